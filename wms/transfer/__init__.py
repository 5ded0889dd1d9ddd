"""Transfer of jobs' files: a store of sandboxes, archives that are safe to unpack, and files that jobs name by URL."""

from wms.transfer.archive import MAX_ARCHIVE, Allowance, ArchiveLimits, pack, unpack
from wms.transfer.patterns import SelectedFiles, UnmatchedFiles, left_behind, select, selects
from wms.transfer.sandbox import download, fetch_archive, keep, upload
from wms.transfer.store import Objects, SandboxStore, open_store
from wms.transfer.stored_object import DeletedObjects, TornSandbox, digest_of

__all__ = [
    "MAX_ARCHIVE",
    "Allowance",
    "ArchiveLimits",
    "DeletedObjects",
    "Objects",
    "SandboxStore",
    "SelectedFiles",
    "TornSandbox",
    "UnmatchedFiles",
    "digest_of",
    "download",
    "fetch_archive",
    "keep",
    "left_behind",
    "open_store",
    "pack",
    "select",
    "selects",
    "unpack",
    "upload",
]
