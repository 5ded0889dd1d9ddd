"""A sandbox store in a local directory.

Layout below the directory: `ab/cdef...` are the objects, `tmp/` files that are being written, `corrupt/` objects that were found
corrupt. `.lock` is locked shared while an object is added or renewed, and exclusively while one is removed. An object is complete or
absent: it is written elsewhere, forced to disk, and renamed.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId
from wms.jobdesc.description import SandboxRef
from wms.transfer.stored_object import (
    MAX_OBJECT,
    DeletedObjects,
    TornSandbox,
    checked_digest,
    checked_size,
    copied,
    digest_of,
)

_REST = re.compile(r"[0-9a-f]{62}")
_FAN = re.compile(r"[0-9a-f]{2}")
_Result = TypeVar("_Result")


class DirectoryStore:
    """A store of objects in a local directory. Any number of processes may use it at once."""

    def __init__(self, root: Path, *, max_object: int = MAX_OBJECT) -> None:
        self._root = root
        self._max_object = max_object
        self._aside = root / "tmp"
        self._corrupt = root / "corrupt"
        with _translated():
            for directory in (root, self._aside, self._corrupt):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            (root / ".lock").touch(mode=0o600)

    @property
    def max_object(self) -> int:
        """How many bytes an object may have that the store takes or returns."""
        return self._max_object

    def of_attempt(self, attempt_id: AttemptId) -> "DirectoryStore":  # noqa: ARG002 - the port of pilots' stores
        """Return this store, in which all attempts have the same objects."""
        return self

    async def put(self, source: Path | bytes) -> SandboxRef:
        """Store these bytes, or the content of this file, and return the reference. If they are stored already, their age begins anew.

        Raise Rejected if the content is over `max_object` or the file does not exist, Unavailable if the store fails.
        """
        return await asyncio.to_thread(self.keep, source)

    def keep(self, source: Path | bytes) -> SandboxRef:
        """Store bytes or a file, as `put` does, but block meanwhile."""
        with _translated():
            return self._put_bytes(source) if isinstance(source, bytes) else self._put_file(source)

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Copy the object with this name to `to_path` once its bytes are verified; return its reference.

        Raise Rejected if no object has this name, TornSandbox if its bytes do not match the name, Unavailable if the store fails. Then no
        file is at `to_path`.
        """
        return await _threaded(self._fetch, sha256, to_path)

    @property
    def opens_copies(self) -> bool:
        """False: what is opened is the object itself."""
        return False

    async def opened(self, sha256: str) -> BinaryIO:
        """Return an object as an open file, after its bytes are verified. See `SandboxStore.opened`."""
        return await _threaded(self._opened, sha256)

    async def exists(self, sha256: str) -> bool:
        """Return whether an object with this name is stored. Its bytes are not verified."""
        return await _threaded(self._path(sha256).is_file)

    async def download_url(self, sha256: str, seconds: float) -> None:
        """Return None: nobody but the processes of this machine reads the directory."""

    async def delete_unreferenced(self, referenced: set[str], older_than_seconds: float) -> DeletedObjects:
        """Delete objects whose name is not in `referenced` and that were not stored or renewed for `older_than_seconds`.

        The age must be well above the time between storing an object and committing its reference. Nothing else protects new objects. Files
        of dead writers and corrupt objects of that age are deleted too.
        """
        return await _threaded(self._collect, referenced, older_than_seconds)

    # --- below here everything blocks, and runs in a thread -------------------------------------------------------

    def _path(self, sha256: str) -> Path:
        checked_digest(sha256)
        return self._root / sha256[:2] / sha256[2:]

    def _put_bytes(self, data: bytes) -> SandboxRef:
        checked_size(len(data), self._max_object)
        ref = SandboxRef(sha256=digest_of(data), size=len(data))
        if not self._touched(ref):
            with self._writing() as (file, path):
                file.write(data)
                self._keep(file, path, ref)
        return ref

    def _put_file(self, source: Path) -> SandboxRef:
        try:
            reader = source.open("rb")
        except (FileNotFoundError, IsADirectoryError) as error:
            raise Rejected("NO_SUCH_FILE", f"no file to put into the store: {source}") from error
        with reader, self._writing() as (file, path):
            ref = copied(reader, file, self._max_object)
            if not self._touched(ref):
                self._keep(file, path, ref)
        return ref

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[BinaryIO, Path]]:
        path = self._aside / secrets.token_hex(12)
        try:
            with path.open("xb") as file:
                yield file, path
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        descriptor = os.open(self._root / ".lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)

    def _touched(self, ref: SandboxRef) -> bool:
        """Let the age of a stored object begin anew; return whether it is stored. One of another size is corrupt and does not count."""
        path = self._path(ref.sha256)
        with self._locked(fcntl.LOCK_SH), contextlib.suppress(FileNotFoundError):
            if path.stat().st_size == ref.size:
                os.utime(path)
                return True
        return False

    def _keep(self, file: BinaryIO, aside: Path, ref: SandboxRef) -> None:
        file.flush()
        os.fsync(file.fileno())
        path = self._path(ref.sha256)
        with self._locked(fcntl.LOCK_SH):
            if _made(path.parent):
                _sync_directory(self._root)
            aside.chmod(0o600)
            aside.replace(path)
        _sync_directory(path.parent)

    def _source(self, sha256: str) -> BinaryIO:
        try:
            return self._path(sha256).open("rb")
        except FileNotFoundError as error:
            raise Rejected(
                "NO_SUCH_SANDBOX", f"no sandbox {sha256} in the store", "submit its files again"
            ) from error

    def _opened(self, sha256: str) -> BinaryIO:
        source = self._source(sha256)
        try:
            self._verified(source, None, sha256)
            source.seek(0)
        except BaseException:
            source.close()
            raise
        return source

    def _fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        source = self._source(sha256)
        aside = to_path.with_name(f".{to_path.name}.{secrets.token_hex(4)}")
        try:
            with source, aside.open("xb") as target:
                ref = self._verified(source, target, sha256)
            aside.replace(to_path)
        finally:
            aside.unlink(missing_ok=True)
        return ref

    def _verified(self, source: BinaryIO, target: BinaryIO | None, sha256: str) -> SandboxRef:
        # Torn objects may be of any length: what is over the limit need not be read to be known as torn.
        size = os.fstat(source.fileno()).st_size
        ref = copied(source, target, self._max_object) if size <= self._max_object else None
        if ref is None or ref.sha256 != sha256:
            self._isolate(source, sha256)
            raise TornSandbox(
                f"sandbox {sha256} is torn: its {size} bytes have another SHA-256; it was set aside"
            )
        return ref

    def _isolate(self, source: BinaryIO, sha256: str) -> None:
        """Move the corrupt object that was read to `corrupt/`, unless it was replaced meanwhile."""
        path = self._path(sha256)
        with self._locked(fcntl.LOCK_EX), contextlib.suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(source.fileno())):
                path.replace(self._corrupt / f"{sha256}-{secrets.token_hex(4)}")

    def _collect(self, referenced: set[str], older_than_seconds: float) -> DeletedObjects:
        # Judged by the file system's own clock, which dated the files, and not by this machine's.
        with self._writing() as (_, probe):
            oldest = probe.stat().st_mtime - older_than_seconds
        objects = size = 0
        for name, path in self._objects():
            if name not in referenced:
                gone = self._deleted(path, oldest)
                objects, size = objects + (gone is not None), size + (gone or 0)
        aside = [*self._aside.iterdir(), *self._corrupt.iterdir()]
        leftovers = sum(self._deleted(path, oldest) is not None for path in aside)
        return DeletedObjects(objects=objects, bytes=size, leftovers=leftovers)

    def _objects(self) -> Iterator[tuple[str, Path]]:
        for fan in self._root.iterdir():
            if _FAN.fullmatch(fan.name):
                for path in fan.iterdir():
                    if _REST.fullmatch(path.name):
                        yield fan.name + path.name, path

    def _deleted(self, path: Path, oldest: float) -> int | None:
        """Delete the file if it was last modified before `oldest`. Return its size in bytes; None if it was kept."""
        # Looked at again under the lock: a put may have made it young since the listing.
        with self._locked(fcntl.LOCK_EX), contextlib.suppress(FileNotFoundError):
            found = path.stat()
            if found.st_mtime < oldest:
                path.unlink()
                return found.st_size
        return None


async def _threaded(work: Callable[..., _Result], *arguments: object) -> _Result:
    with _translated():
        return await asyncio.to_thread(work, *arguments)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"the sandbox store failed: {error}") from error


def _made(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
