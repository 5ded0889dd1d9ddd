"""A sandbox store in a bucket of S3, which services on many machines share.

Layout below the prefix: `ab/cdef...` are the objects, `corrupt/` those that were found corrupt, `clock` tells the server's time. An object is
complete or absent, as S3 shows one only when all of it has come.
"""

import asyncio
import contextlib
import io
import re
import secrets
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import obstore
from obstore import exceptions

from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId
from wms.jobdesc.description import SandboxRef
from wms.transfer.s3_bucket import opened_bucket
from wms.transfer.s3_settings import S3Settings
from wms.transfer.stored_object import MAX_OBJECT, DeletedObjects, TornSandbox, checked_digest, copied

TRIES = 3
SECONDS = 300.0
"""Seconds that one request may take."""
PART = 8 * 1024 * 1024
"""Bytes of a part of an upload, and of what one request brings of an object."""

_OBJECT = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})")


class S3SandboxStore:
    """A store of objects in a bucket, below a prefix."""

    def __init__(
        self, bucket: str, prefix: str, settings: S3Settings, *, max_object: int = MAX_OBJECT
    ) -> None:
        """`prefix` has no slash at its ends; empty: the whole bucket. Raise Unavailable if the credentials cannot be read."""
        self._bucket = opened_bucket(bucket, settings, tries=TRIES, seconds=SECONDS)
        self._prefix = f"{prefix}/" if prefix else ""
        self._max_object = max_object

    @property
    def max_object(self) -> int:
        """How many bytes an object may have that the store takes or returns."""
        return self._max_object

    def of_attempt(self, attempt_id: AttemptId) -> "S3SandboxStore":  # noqa: ARG002 - the port of pilots' stores
        """Return this store, in which all attempts have the same objects."""
        return self

    async def put(self, source: Path | bytes) -> SandboxRef:
        """Store these bytes, or the content of this file. See `SandboxStore.put`."""
        return await asyncio.to_thread(self.keep, source)

    def keep(self, source: Path | bytes) -> SandboxRef:
        """Store bytes or a file, as `put` does, but block meanwhile."""
        with _opened(source) as file:
            ref = copied(file, None, self._max_object)
            file.seek(0)
            # Sent again even if it is there: nothing else makes an object of S3 younger.
            self._send(self._key(ref.sha256), file, ref.size)
        return ref

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Copy an object to `to_path` after its bytes are verified. See `SandboxStore.fetch`."""
        return await asyncio.to_thread(self._fetch, sha256, to_path)

    @property
    def opens_copies(self) -> bool:
        """True: an object can be verified only once all of it has come."""
        return True

    async def opened(self, sha256: str) -> BinaryIO:
        """Return a copy of an object as an open file, after its bytes are verified. See `SandboxStore.opened`."""
        return await asyncio.to_thread(self._opened, sha256)

    async def exists(self, sha256: str) -> bool:
        """Return whether an object with this name is stored. Its bytes are not verified."""
        key = self._key(sha256)
        with contextlib.suppress(_Absent), _translated():
            await obstore.head_async(self._bucket, key)
            return True
        return False

    async def download_url(self, sha256: str, seconds: float) -> str | None:
        """Return a URL that is signed for reading this object. Raise Rejected if it does not exist."""
        if not await self.exists(sha256):
            raise _missing(sha256)
        with _translated():
            return await obstore.sign_async(
                self._bucket, "GET", self._key(sha256), timedelta(seconds=seconds)
            )

    async def delete_unreferenced(self, referenced: set[str], older_than_seconds: float) -> DeletedObjects:
        """Delete old objects to which nothing refers. See `SandboxStore.delete_unreferenced`."""
        return await asyncio.to_thread(self._collect, referenced, older_than_seconds)

    # --- below here everything blocks, and runs in a thread -------------------------------------------------------

    def _key(self, sha256: str) -> str:
        checked_digest(sha256)
        return f"{self._prefix}{sha256[:2]}/{sha256[2:]}"

    def _send(self, key: str, file: BinaryIO | bytes, size: int) -> None:
        try:
            with _translated():
                obstore.put(self._bucket, key, file, use_multipart=size > PART, chunk_size=PART)
        except _Absent:
            raise Unavailable("the sandbox store failed: there is no such bucket") from None

    def _fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        aside = to_path.with_name(f".{to_path.name}.{secrets.token_hex(4)}")
        try:
            with aside.open("xb") as target:
                ref = self._verified(sha256, target)
            aside.replace(to_path)
        finally:
            aside.unlink(missing_ok=True)
        return ref

    def _opened(self, sha256: str) -> BinaryIO:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile(prefix="wms-archive-"))
            self._verified(sha256, file)
            file.seek(0)
            stack.pop_all()
        return file

    def _verified(self, sha256: str, target: BinaryIO) -> SandboxRef:
        """Copy an object to `target`, and return its reference. Raise TornSandbox if its bytes have another digest."""
        try:
            with _translated():
                found = obstore.get(self._bucket, self._key(sha256))
                torn = found.meta["size"] > self._max_object
                ref = None if torn else copied(_Stream(found.stream(PART)), target, self._max_object)
        except _Absent:
            raise _missing(sha256) from None
        if ref is None or ref.sha256 != sha256:
            self._isolate(sha256, found.meta["e_tag"])
            raise TornSandbox(
                f"sandbox {sha256} is torn: its {found.meta['size']} bytes have another SHA-256"
            )
        return ref

    def _isolate(self, sha256: str, e_tag: str | None) -> None:
        """Move the corrupt object that was read to `corrupt/`, unless it was replaced meanwhile."""
        key = self._key(sha256)
        with contextlib.suppress(_Absent), _translated():
            if obstore.head(self._bucket, key)["e_tag"] == e_tag:
                aside = f"{self._prefix}corrupt/{sha256}-{secrets.token_hex(4)}"
                obstore.rename(self._bucket, key, aside)

    def _collect(self, referenced: set[str], older_than_seconds: float) -> DeletedObjects:
        objects = size = leftovers = 0
        with _translated():
            oldest = self._now() - timedelta(seconds=older_than_seconds)
            for page in obstore.list(self._bucket, self._prefix or None):
                for each in page:
                    name = self._named(each["path"])
                    if name in referenced or each["last_modified"] >= oldest:
                        continue
                    if self._deleted(each["path"], oldest):
                        objects += name is not None
                        size += each["size"] if name else 0
                        leftovers += name is None
        return DeletedObjects(objects=objects, bytes=size, leftovers=leftovers)

    def _now(self) -> datetime:
        """Return the server's time, by which it dates objects."""
        key = f"{self._prefix}clock"
        self._send(key, b"", 0)
        return obstore.head(self._bucket, key)["last_modified"]

    def _named(self, path: str) -> str | None:
        """Return the name of the object at a path; None if it is none of the store's objects."""
        found = _OBJECT.fullmatch(path.removeprefix(self._prefix))
        return found[1] + found[2] if found else None

    def _deleted(self, path: str, oldest: datetime) -> bool:
        """Delete what is at a path if it was stored before `oldest`. Its time is read again first, since a put may have renewed it."""
        with contextlib.suppress(_Absent), _translated():
            if obstore.head(self._bucket, path)["last_modified"] < oldest:
                obstore.delete(self._bucket, path)
                return True
        return False


class _Stream:
    """The pieces of an object as a stream that is read by size."""

    def __init__(self, pieces: "Iterator[object]") -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        """Return at most `size` of the next bytes; none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = memoryview(piece)  # type: ignore[arg-type]  # a buffer of the library's own
        taken, self._rest = self._rest[:size], self._rest[size:]
        return bytes(taken)


@contextlib.contextmanager
def _opened(source: Path | bytes) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    try:
        file = source.open("rb")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise Rejected("NO_SUCH_FILE", f"no file to put into the store: {source}") from error
    with file:
        yield file


def _missing(sha256: str) -> Rejected:
    return Rejected("NO_SUCH_SANDBOX", f"no sandbox {sha256} in the store", "submit its files again")


class _Absent(Exception):  # noqa: N818 - an outcome
    """There is no such object, or no such bucket."""


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Raise Unavailable for errors of S3, but _Absent for an object that is not there."""
    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError) as error:
        raise _Absent(str(error)) from None
    except (exceptions.BaseError, OSError) as error:
        raise Unavailable(f"the sandbox store failed: {' '.join(str(error).split())[:300]}") from None
