"""Sandboxes: a content-addressed store, and archives that are safe to unpack."""

from wms.transfer.archive import MAX_ARCHIVE, Limits, pack, unpack
from wms.transfer.patterns import Left, Selection, left_behind, select
from wms.transfer.sandbox import download, keep, upload
from wms.transfer.store import Collected, SandboxStore, TornSandbox, digest_of, open_store

__all__ = [
    "MAX_ARCHIVE",
    "Collected",
    "Left",
    "Limits",
    "SandboxStore",
    "Selection",
    "TornSandbox",
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
