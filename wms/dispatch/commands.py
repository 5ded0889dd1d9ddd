"""A batch system's command line tools: run with an environment of ours, within bounds on their time and on what they print."""

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Mapping
from typing import NamedTuple

from wms.errors import Unavailable, shown

TOOL_SECONDS = 60.0
SIZE_LIMIT = 256 * 2**20
"""Of what a tool prints: `squeue --json` of Slurm 22.05 takes 3.4 kB a job."""
_COMPLAINT_LIMIT = 4_096
_PIECE = 1 << 16
_END_SECONDS = 10.0


class ToolOutput(NamedTuple):
    """How a tool ended, and what it printed."""

    code: int
    printed: bytes
    complained: bytes

    @property
    def out(self) -> str:
        """What it printed, as text."""
        return self.printed.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        """The beginning of what it complained of."""
        return self.complained.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """What it said when it failed, on one line."""
        said = (self.complained or self.printed[:_COMPLAINT_LIMIT]).decode("utf-8", "replace")
        return shown(" ".join(said.split()), 300) or f"exit code {self.code}"


class Tools:
    """Runs a middleware's tools, some at a time, each for `seconds` and `limit` bytes of what it prints at most."""

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
        """Run a tool with `text` as its input. Raises Unavailable if it cannot be run or passes a bound."""
        async with self._turns:
            return await self._run(argv, text.encode())

    async def ask(self, *argv: str, text: str = "") -> ToolOutput:
        """Run a tool that must not fail: raises Unavailable if it did, too."""
        said = await self.run(*argv, text=text)
        if said.code != 0:
            raise Unavailable(f"{argv[0]}: {said.complaint}")
        return said

    async def _run(self, argv: tuple[str, ...], text: bytes) -> ToolOutput:
        try:
            process = await self._start(argv, text)
        except OSError as error:
            raise Unavailable(f"{argv[0]} cannot be run: {error.strerror}") from None
        # Beside it: a tool that waits for somebody to read its complaints would print nothing more.
        complaint = asyncio.create_task(_beginning(process.stderr))
        try:
            async with asyncio.timeout(self._seconds):
                printed = await _all(process.stdout, argv[0], self._limit)
                code = await process.wait()
        except TimeoutError:
            raise Unavailable(f"{argv[0]} has not ended within {self._seconds:g} s") from None
        finally:
            if process.returncode is None:
                await _kill(process)
            complained = await _within(complaint, _END_SECONDS)
        return ToolOutput(code, printed, complained)

    async def _start(self, argv: tuple[str, ...], text: bytes) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        # Not through a pipe: a tool may have ended before it is written to, which uvloop takes for a fault of ours.
        with tempfile.TemporaryFile() as given:
            given.write(text)
            given.seek(0)
            return await asyncio.create_subprocess_exec(
                *argv, env=self._environment, stdin=given, stdout=pipe, stderr=pipe, start_new_session=True
            )


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill it and wait for its end, which asyncio does not see before what it printed is read."""
    process.kill()
    await _within(_beginning(process.stdout), _END_SECONDS)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()


async def _within(reading: Awaitable[bytes], seconds: float) -> bytes:
    """Return what is read; nothing if that takes too long, for what a tool left behind may hold its pipes."""
    try:
        async with asyncio.timeout(seconds):
            return await reading
    except TimeoutError:
        return b""


async def _all(stream: asyncio.StreamReader | None, tool: str, limit: int) -> bytes:
    assert stream is not None
    pieces = bytearray()
    while piece := await stream.read(_PIECE):
        pieces += piece
        if len(pieces) > limit:
            raise Unavailable(f"{tool} printed over {limit:,} bytes")
    return bytes(pieces)


async def _beginning(stream: asyncio.StreamReader | None) -> bytes:
    """Return the beginning of what is printed; the rest is read, too, so that nobody waits for us, and forgotten."""
    assert stream is not None
    begun = b""
    while piece := await stream.read(_PIECE):
        begun = (begun + piece)[:_COMPLAINT_LIMIT]
    return begun
