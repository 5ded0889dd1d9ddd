"""A tool's process, started without a copy of this one, which makes it several times cheaper to start in a service.

uvloop starts a child by `fork`: the kernel copies the page tables of the service first, and the service copies each page that it then
writes to. `subprocess` starts it by `vfork`, which copies nothing.
"""

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Self


class ToolProcess:
    """A running command line tool. Whoever starts it calls `close` in the end, after `wait` or `kill`."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        pipes: Sequence[tuple[asyncio.StreamReader, asyncio.ReadTransport]],
    ) -> None:
        """Wrap a process that runs; `pipes` are its standard output and its standard error."""
        self._process = process
        (self.stdout, _), (self.stderr, _) = pipes
        self._transports = [transport for _, transport in pipes]

    @classmethod
    async def start(cls, argv: Sequence[str], environment: Mapping[str, str], text: bytes) -> Self:
        """Start a tool with `text` as its standard input, in a session of its own. Raise OSError if it cannot be run."""
        process = _begun(argv, environment, text)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            return cls(process, [await _connected(process.stdout), await _connected(process.stderr)])
        except BaseException:
            process.kill()
            raise

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, and its exit code is known."""
        return self._process.poll() is not None

    async def wait(self) -> int:
        """Wait until the process has ended, and return its exit code; the number of the signal, negative, if one ended it."""
        if self.has_ended:
            return self._process.returncode
        loop, handle = asyncio.get_running_loop(), os.pidfd_open(self._process.pid)
        ended = asyncio.Event()
        loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        return self._process.wait()

    def kill(self) -> None:
        """Kill the process. One that has ended stays as it is."""
        self._process.kill()

    def close(self) -> None:
        """Close the pipes, also if a process that the tool left behind still has them open."""
        for each in self._transports:
            with contextlib.suppress(OSError):
                each.close()


def _begun(argv: Sequence[str], environment: Mapping[str, str], text: bytes) -> subprocess.Popen[bytes]:
    # In a file, since a tool may end before it reads a pipe.
    with tempfile.TemporaryFile() as given:
        given.write(text)
        given.seek(0)
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


async def _connected(pipe: IO[bytes]) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport
