"""Moves files by a command-line tool of the node: `xrdcp` for XRootD, and `gfal-copy` for GridFTP, SRM and other schemes that gfal supports."""

import asyncio
import contextlib
import ipaddress
import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from wms.errors import Rejected, Unavailable, shown
from wms.transfer.access_rules import AccessRules
from wms.transfer.file_url import FileUrl, redacted
from wms.transfer.mover import FULL, NO_ACCESS, NO_FILE, OutgoingFile
from wms.transfer.part_file import PartFile
from wms.transfer.transfer_limits import Meter

LOOK_SECONDS = 0.2
"""How often, in seconds, the size of a file is read while a tool writes it."""
_SAID_BYTES = 8_192
_CODES = {
    NO_FILE: ("no such file", "not found", "3011", "file not found"),
    NO_ACCESS: ("permission denied", "not authorized", "3010", "authentication failed", "auth failed"),
    FULL: ("no space left", "quota exceeded", "disk full", "3009"),
}


class ToolMover:
    """The base of movers that run a tool of the node. A tool that breaks a transfer limit is killed."""

    program = ""
    package = ""
    """The Debian package that has the program."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules

    @classmethod
    def is_installed(cls) -> bool:
        """Return whether the tool is in the PATH of the node."""
        return shutil.which(cls.program) is not None

    async def fetch(self, url: FileUrl, part: PartFile, meter: Meter) -> None:
        """Fetch the whole file at the URL into `part` by the tool. Progress is measured by the file's size.

        Raise Rejected if the storage refuses, Unavailable if another try may succeed.
        """
        await self._judge(url)
        part.discard()
        try:
            await _run(self._fetch_command(url, part.path), url, meter, part.path)
        except BaseException:
            part.discard()
            raise
        part.adopt(url)

    async def put(self, sending: OutgoingFile, url: FileUrl, meter: Meter) -> None:
        """Put the file by the tool under a temporary name, and rename it at the end.

        Raise Rejected if the storage refuses, Unavailable if another try may succeed.
        """
        await self._judge(url)
        temporary = url.beside(sending.mark)
        try:
            await _run(self._put_command(sending.source, temporary), url, meter)
            meter.moved(sending.size)
            sending.commit()
            await _run(self._rename_command(temporary, url), url, meter)
        except BaseException:
            with contextlib.suppress(Rejected, Unavailable):
                await _run(self._remove_command(temporary), url, meter)
            raise

    async def _judge(self, url: FileUrl) -> None:
        """Raise Rejected if the tool is missing, or the rules exclude an address of the URL's host. Raise Unavailable if the host has no address."""
        if not self.is_installed():
            raise Rejected(NO_ACCESS, f"{url}: this node has no {self.program} (package {self.package})")
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(url.host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unavailable(f"{url}: {error.strerror}") from None
        for *_, address in found:
            self._rules.check_address(url.host, ipaddress.ip_address(str(address[0]).partition("%")[0]))

    def _fetch_command(self, url: FileUrl, path: Path) -> Sequence[str]:
        raise NotImplementedError

    def _put_command(self, path: Path, url: FileUrl) -> Sequence[str]:
        raise NotImplementedError

    def _rename_command(self, temporary: FileUrl, url: FileUrl) -> Sequence[str]:
        raise NotImplementedError

    def _remove_command(self, url: FileUrl) -> Sequence[str]:
        raise NotImplementedError


class XrootdMover(ToolMover):
    """Moves files by `xrdcp` and `xrdfs`: `root`, `roots`, `xroot` and `xroots` URLs."""

    program = "xrdcp"
    package = "xrootd-client"

    def _fetch_command(self, url: FileUrl, path: Path) -> Sequence[str]:
        return ("xrdcp", "--nopbar", "--silent", "--force", url.text, str(path))

    def _put_command(self, path: Path, url: FileUrl) -> Sequence[str]:
        return ("xrdcp", "--nopbar", "--silent", "--force", str(path), url.text)

    def _rename_command(self, temporary: FileUrl, url: FileUrl) -> Sequence[str]:
        return ("xrdfs", url.endpoint, "mv", _path(temporary), _path(url))

    def _remove_command(self, url: FileUrl) -> Sequence[str]:
        return ("xrdfs", url.endpoint, "rm", _path(url))


class GfalMover(ToolMover):
    """Moves files by gfal's tools: `gsiftp` and `srm` URLs."""

    program = "gfal-copy"
    package = "gfal2-util-scripts"

    def _fetch_command(self, url: FileUrl, path: Path) -> Sequence[str]:
        return ("gfal-copy", "-f", url.text, path.as_uri())

    def _put_command(self, path: Path, url: FileUrl) -> Sequence[str]:
        return ("gfal-copy", "-f", "-p", path.as_uri(), url.text)

    def _rename_command(self, temporary: FileUrl, url: FileUrl) -> Sequence[str]:
        return ("gfal-rename", temporary.text, url.text)

    def _remove_command(self, url: FileUrl) -> Sequence[str]:
        return ("gfal-rm", url.text)


def _path(url: FileUrl) -> str:
    return "/" + urlsplit(url.text).path.lstrip("/")


async def _run(command: Sequence[str], url: FileUrl, meter: Meter, growing: Path | None = None) -> None:
    """Run a tool to its end, or kill it when the meter raises an error. If the tool fails, raise Rejected or Unavailable, depending on its output.

    `growing` is the file that the tool writes; its size is reported to the meter.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XRD_LOGLEVEL": "Error", "XRD_CONNECTIONRETRY": "1", "XRD_CONNECTIONWINDOW": "20"},
    )
    assert process.stderr is not None
    said = asyncio.create_task(_said(process.stderr))
    try:
        async with contextlib.AsyncExitStack() as stack:
            if growing is not None:
                await stack.enter_async_context(meter.watching())
            await _watched(process, meter, growing)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        text = await said
    if process.returncode:
        raise _failure(url, text)


async def _watched(process: asyncio.subprocess.Process, meter: Meter, growing: Path | None) -> None:
    meter.begin()
    seen = 0
    while process.returncode is None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await process.wait()
        size = _size(growing) if growing else 0
        meter.moved(max(0, size - seen))
        seen = max(seen, size)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


async def _said(stream: asyncio.StreamReader) -> str:
    """Read all output of a tool, so that it never blocks on a full pipe. Return the last part of it."""
    last = b""
    while data := await stream.read(_SAID_BYTES):
        last = (last + data)[-_SAID_BYTES:]
    return last.decode("utf-8", "replace")


def _failure(url: FileUrl, said: str) -> Rejected | Unavailable:
    words = f"{url}: {shown(redacted(' '.join(said.split())), 300)}"
    for code, signs in _CODES.items():
        if any(sign in said.casefold() for sign in signs):
            return Rejected(code, words)
    return Unavailable(words)
