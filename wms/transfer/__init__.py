"""Transfer of jobs' files: a store of sandboxes, archives that are safe to unpack, and files that jobs name by URL."""

from wms.transfer.archive import MAX_ARCHIVE, ArchiveLimits, pack, unpack
from wms.transfer.patterns import SelectedFiles, UnmatchedFiles, left_behind, select
from wms.transfer.sandbox import download, keep, upload
from wms.transfer.store import Objects, SandboxStore, open_store
from wms.transfer.stored_object import DeletedObjects, TornSandbox, digest_of

__all__ = [
    "MAX_ARCHIVE",
    "ArchiveLimits",
    "DeletedObjects",
    "Objects",
    "SandboxStore",
    "SelectedFiles",
    "TornSandbox",
    "UnmatchedFiles",
    "digest_of",
    "download",
    "keep",
    "left_behind",
    "open_store",
    "pack",
    "select",
    "unpack",
    "upload",
]
