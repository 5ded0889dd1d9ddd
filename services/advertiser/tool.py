"""A batch system's tool, run once: with an environment made from nothing, and bounds on its time and what it prints."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from wms.errors import Unavailable, shown

SECONDS = 60.0
SIZE_LIMIT = 256 * 2**20
"""Of what it prints: `squeue --json` of Slurm 22.05 takes 3.4 kB a job."""
_ERROR_LIMIT = 4_096
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
    try:
        async with asyncio.timeout(seconds):
            printed, complaint = await asyncio.gather(
                _read(process.stdout, limit), _read(process.stderr, _ERROR_LIMIT)
            )
            status = None if printed is None else await process.wait()
    except TimeoutError:
        raise Unavailable(f"{argv[0]} took over {seconds:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if printed is None:
        raise Unavailable(f"{argv[0]} printed over {limit:,} bytes")
    if status != 0:
        raise Unavailable(f"{argv[0]}: {shown((complaint or b'').decode('utf-8', 'replace').strip(), 500)}")
    return printed


async def _read(stream: asyncio.StreamReader | None, limit: int) -> bytes | None:
    """Read to the end; None if there is more than the limit."""
    assert stream is not None
    pieces = bytearray()
    while piece := await stream.read(1 << 16):
        pieces += piece
        if len(pieces) > limit:
            return None
    return bytes(pieces)
