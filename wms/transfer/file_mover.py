"""Moves files of the node and its mounted file systems: `file:///...` URLs below directories that the site allows."""

import asyncio
import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from wms.errors import Rejected, Unavailable
from wms.transfer.access_rules import AccessRules
from wms.transfer.file_url import FileUrl
from wms.transfer.mover import FULL, NO_ACCESS, NO_FILE, OutgoingFile
from wms.transfer.part_file import PartFile
from wms.transfer.transfer_limits import Meter

_CHUNK = 4 * 1024 * 1024
_CODES = {
    errno.ENOENT: NO_FILE,
    errno.ENOTDIR: NO_FILE,
    errno.ELOOP: NO_ACCESS,
    errno.EACCES: NO_ACCESS,
    errno.EPERM: NO_ACCESS,
    errno.EROFS: NO_ACCESS,
    errno.EISDIR: NO_ACCESS,
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EFBIG: FULL,
}


class FileMover:
    """Copies files of the node. The rules are applied to the file that was actually opened, so that no link leads elsewhere."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules

    async def fetch(self, url: FileUrl, part: PartFile, meter: Meter) -> None:
        """Copy the file at the URL into `part`. Raise Rejected if it is missing or not allowed, Unavailable if another try may succeed."""
        with _told(url):
            source = await asyncio.to_thread(self._opened, url)
        with source:
            meter.check_size(os.fstat(source.fileno()).st_size)
            with part.open(url, 0) as target:
                await _copy(url, source, lambda data: part.append(target, data), meter)

    async def put(self, sending: OutgoingFile, url: FileUrl, meter: Meter) -> None:
        """Copy a file into the target's directory under a temporary name, and rename it at the end.

        Raise Rejected if the target is not allowed, Unavailable if another try may succeed.
        """
        with _told(url):
            target = await asyncio.to_thread(self._target, url)
        temporary = target.with_name(target.name[:100] + sending.mark)
        try:
            await self._write(sending, url, temporary, meter)
            sending.commit()
            with _told(url):
                os.replace(temporary, target)  # noqa: PTH105 - at once, after the lease was looked at
        finally:
            temporary.unlink(missing_ok=True)

    async def _write(self, sending: OutgoingFile, url: FileUrl, temporary: Path, meter: Meter) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with _told(url):
            file = os.fdopen(os.open(temporary, flags, 0o644), "wb", 0)
        with file, sending.source.open("rb") as source:
            await _copy(url, source, lambda data: _write_all(file, data), meter)
            with _told(url):
                await asyncio.to_thread(os.fsync, file.fileno())

    def _opened(self, url: FileUrl) -> BinaryIO:
        descriptor = os.open(url.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(os.fdopen(descriptor, "rb"))
            self._judge(url, descriptor)
            stack.pop_all()
        return file

    def _judge(self, url: FileUrl, descriptor: int) -> None:
        """Raise Rejected unless the opened file is a regular one below an allowed directory."""
        self._rules.check_path(url, str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Rejected(NO_ACCESS, f"{url} is not a regular file")

    def _target(self, url: FileUrl) -> Path:
        """Return the target's path with links resolved. Missing parent directories are made if they are below an allowed one."""
        path = Path(url.path)
        self._rules.check_path(url, str(path.parent.resolve() / path.name))
        path.parent.mkdir(parents=True, exist_ok=True)
        parent = path.parent.resolve(strict=True)
        self._rules.check_path(url, str(parent / path.name))
        return parent / path.name


async def _copy(url: FileUrl, source: BinaryIO, write: Callable[[bytes], None], meter: Meter) -> None:
    meter.begin()
    async with meter.watching():
        while True:
            with _told(url):
                data = await asyncio.to_thread(source.read, _CHUNK)
            if not data:
                return
            meter.moved(len(data))
            with _told(url):
                await asyncio.to_thread(write, data)


def _write_all(file: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


@contextlib.contextmanager
def _told(url: FileUrl) -> Iterator[None]:
    """In this context, an error of the file system becomes Rejected, or Unavailable if another try may succeed."""
    try:
        yield
    except OSError as error:
        words = f"{url}: {error.strerror or error}"
        if code := _CODES.get(error.errno or 0):
            raise Rejected(code, words) from None
        raise Unavailable(words) from None
