"""The sandbox store: archives as objects named by the SHA-256 of their bytes, so that equal content is stored once.

It is a directory (`directory_store.py`) or a bucket of S3 (`s3_store.py`). An object is complete or absent, and verified when it is read.
"""

from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from wms.errors import Rejected
from wms.ids import AttemptId
from wms.jobdesc.description import SandboxRef
from wms.transfer.s3_settings import S3Settings
from wms.transfer.stored_object import MAX_OBJECT, DeletedObjects


class Objects(Protocol):
    """Where clients keep sandboxes: a store itself, or the way to one through a gateway."""

    @property
    def max_object(self) -> int:
        """The size in bytes of the largest object that can be stored or fetched."""

    def keep(self, source: Path | bytes) -> SandboxRef:
        """Store these bytes, or the content of this file; return the reference. It blocks. The errors are those of `SandboxStore.put`."""

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Copy the object to `to_path` after its bytes are verified. The errors are those of `SandboxStore.fetch`."""


class SandboxStore(Objects, Protocol):
    """A store itself, as services use it. Any number of processes may use one store at once."""

    def of_attempt(self, attempt_id: AttemptId) -> "SandboxStore":
        """Return this store, in which all attempts have the same objects."""

    async def put(self, source: Path | bytes) -> SandboxRef:
        """Store these bytes, or the content of this file, and return the reference. If they are stored already, their age begins anew.

        Raise Rejected if the content is over `max_object` or the file does not exist, Unavailable if the store fails.
        """

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Copy the object with this name to `to_path` once its bytes are verified; return its reference.

        Raise Rejected if no object has this name, TornSandbox if its bytes do not match the name, Unavailable if the store fails. Then no
        file is at `to_path`.
        """

    @property
    def opens_copies(self) -> bool:
        """Whether `opened` makes a copy in the temporary directory."""

    async def opened(self, sha256: str) -> BinaryIO:
        """Return the object with this name as an open file, after its bytes are verified. The errors are those of `fetch`.

        In a directory it is the object itself, else a copy without a name, which is gone once it is closed.
        """

    async def exists(self, sha256: str) -> bool:
        """Return whether an object with this name is stored. Its bytes are not verified."""

    async def download_url(self, sha256: str, seconds: float) -> str | None:
        """Return a URL under which anybody can fetch the object for `seconds` seconds, in ranges too; None if the store has no such URLs.

        Whoever fetches it verifies its bytes.
        """

    async def delete_unreferenced(self, referenced: set[str], older_than_seconds: float) -> DeletedObjects:
        """Delete objects whose name is not in `referenced` and that were not stored or renewed for `older_than_seconds`.

        The age must be well above the time between storing an object and committing its reference. Nothing else protects new objects. Files
        of dead writers and corrupt objects of that age are deleted too.
        """


def open_store(url: str, s3: S3Settings | None = None, *, max_object: int = MAX_OBJECT) -> "SandboxStore":
    """Open the store at `file:///absolute/directory` or `s3://bucket/prefix`. A directory is created if it does not exist.

    `s3` says where the server is and which credentials it wants. Raise Rejected for another kind of address, Unavailable if the directory
    cannot be created.
    """
    # Each kind is imported when it is used: most processes need one of them, and pilots carry no client of S3.
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "s3" and parts.hostname:
        from wms.transfer.s3_store import S3SandboxStore

        return S3SandboxStore(parts.hostname, path.strip("/"), s3 or S3Settings(), max_object=max_object)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and path.startswith("/"):
        from wms.transfer.directory_store import DirectoryStore

        return DirectoryStore(Path(path), max_object=max_object)
    raise Rejected(
        "BAD_STORE",
        f"not an address of a sandbox store: {url}",
        "give file:///absolute/directory or s3://bucket/prefix",
    )
