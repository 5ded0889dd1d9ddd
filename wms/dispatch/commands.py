"""Runs the command line tools of a batch system with a given environment. Time and output of each are bounded."""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from typing import NamedTuple

from wms.dispatch.tool_process import ToolProcess
from wms.errors import Unavailable, shown

TOOL_SECONDS = 60.0
SIZE_LIMIT = 256 * 2**20
"""How many bytes a tool may print. For comparison: `squeue --json` of Slurm 22.05 prints 3.4 kB for each job."""
_COMPLAINT_LIMIT = 4_096
_PIECE = 1 << 16
_END_SECONDS = 10.0


class ToolOutput(NamedTuple):
    """The exit code of a tool, its standard output, and the beginning of its standard error."""

    code: int
    printed: bytes
    complained: bytes

    @property
    def out(self) -> str:
        """The standard output as text."""
        return self.printed.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        """The beginning of the standard error as text."""
        return self.complained.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """The tool's error message on one line; its exit code in words if it printed nothing."""
        said = (self.complained or self.printed[:_COMPLAINT_LIMIT]).decode("utf-8", "replace")
        return shown(" ".join(said.split()), 300) or f"exit code {self.code}"


class Tools:
    """Runs command line tools with the variables `environment` alone, at most `at_once` at a time.

    Each tool may run for `seconds` seconds and print `limit` bytes.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        at_once: int = 4,
        seconds: float = TOOL_SECONDS,
        limit: int = SIZE_LIMIT,
    ) -> None:
        self._environment = dict(environment)
        self._turns = asyncio.Semaphore(at_once)
        self._seconds = seconds
        self._limit = limit

    async def run(self, *argv: str, text: str = "") -> ToolOutput:
        """Run a tool with `text` as its standard input, and return its output, whatever its exit code.

        Raise Unavailable if it cannot be run, takes too long or prints too much.
        """
        async with self._turns:
            return await self._run(argv, text.encode())

    async def ask(self, *argv: str, text: str = "") -> ToolOutput:
        """Run a tool with `text` as its standard input, and return its output.

        Raise Unavailable if it cannot be run, takes too long, prints too much, or exits with another code than 0.
        """
        said = await self.run(*argv, text=text)
        if said.code != 0:
            raise Unavailable(f"{argv[0]}: {said.complaint}")
        return said

    async def _run(self, argv: tuple[str, ...], text: bytes) -> ToolOutput:
        try:
            process = await ToolProcess.start(argv, self._environment, text)
        except OSError as error:
            raise Unavailable(f"{argv[0]} cannot be run: {error.strerror}") from None
        try:
            return await self._read(process, argv[0])
        finally:
            process.close()

    async def _read(self, process: ToolProcess, tool: str) -> ToolOutput:
        # At the same time, since a tool whose standard error is not read may stop and print nothing more.
        complaint = asyncio.create_task(_beginning(process.stderr))
        try:
            async with asyncio.timeout(self._seconds):
                printed = await _all(process.stdout, tool, self._limit)
                code = await process.wait()
        except TimeoutError:
            raise Unavailable(f"{tool} has not ended within {self._seconds:g} s") from None
        finally:
            if not process.has_ended:
                await _kill(process)
            complained = await _within(complaint, _END_SECONDS)
        return ToolOutput(code, printed, complained)


async def _kill(process: ToolProcess) -> None:
    """Kill a process and wait for its end."""
    process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()


async def _within(reading: Awaitable[bytes], seconds: float) -> bytes:
    """Return what was read; empty if reading takes longer than `seconds`, as when a process left by the tool keeps its pipes open."""
    try:
        async with asyncio.timeout(seconds):
            return await reading
    except TimeoutError:
        return b""


async def _all(stream: asyncio.StreamReader, tool: str, limit: int) -> bytes:
    pieces = bytearray()
    while piece := await stream.read(_PIECE):
        pieces += piece
        if len(pieces) > limit:
            raise Unavailable(f"{tool} printed over {limit:,} bytes")
    return bytes(pieces)


async def _beginning(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end and return its beginning. The rest is dropped; it is read so that the writer does not block."""
    begun = b""
    while piece := await stream.read(_PIECE):
        begun = (begun + piece)[:_COMPLAINT_LIMIT]
    return begun
