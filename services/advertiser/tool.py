"""A batch system's tool, run once: with an environment made from nothing, and bounds on its time and what it prints."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Mapping, Sequence

from wms.errors import Unavailable, shown

SECONDS = 60.0
SIZE_LIMIT = 256 * 2**20
"""Of what it prints: `squeue --json` of Slurm 22.05 takes 3.4 kB a job."""
_ERROR_LIMIT = 4_096
_PIECE = 1 << 16
_END_SECONDS = 10.0
_INHERITED = ("PATH", "HOME", "TZ")


async def output(
    argv: Sequence[str], environment: Mapping[str, str], *, seconds: float = SECONDS, limit: int = SIZE_LIMIT
) -> bytes:
    """Return what a tool prints; raises Unavailable if it is not there, fails, takes too long or prints too much."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(environment),
        )
    except OSError as error:
        raise Unavailable(f"{argv[0]}: {error.strerror}") from None
    # Read besides: a tool that waits for somebody to read its complaints would print nothing more.
    complaint = asyncio.create_task(_beginning(process.stderr))
    try:
        async with asyncio.timeout(seconds):
            printed = await _all(process.stdout, argv[0], limit)
            status = await process.wait()
    except TimeoutError:
        raise Unavailable(f"{argv[0]} took over {seconds:g} s") from None
    finally:
        if process.returncode is None:
            await _kill(process)
        complained = await _within(complaint, _END_SECONDS)
    if status != 0:
        raise Unavailable(f"{argv[0]}: {shown(complained.decode('utf-8', 'replace').strip(), 500)}")
    return printed


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
        begun = (begun + piece)[:_ERROR_LIMIT]
    return begun
