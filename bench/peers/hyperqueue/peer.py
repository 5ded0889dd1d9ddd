"""Has HyperQueue run the same number of programs that do nothing, on the same cores with the same slots."""

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path

import msgspec

from bench.measuring import Figures, median
from bench.peers.pip_environment import install

BOUND_SECONDS = 600.0


class _Found(msgspec.Struct):
    version: str
    seconds: list[float]
    cpu_seconds: float


async def measure(jobs: int, slots: int, runs: int) -> Figures:
    """Install it where need be, and measure."""
    python = await asyncio.to_thread(install, "hyperqueue")
    with tempfile.TemporaryDirectory(prefix="wms-bench-hyperqueue-") as place:
        found = msgspec.json.decode(await _told(python, Path(place), jobs, slots, runs), type=_Found)
    return {
        "version": found.version,
        "jobs_per_second": median([jobs / seconds for seconds in found.seconds]),
        "all_seconds": [round(seconds, 2) for seconds in found.seconds],
        "cpu_ms_a_job": round(1e3 * found.cpu_seconds / (jobs * runs), 2),
    }


async def _told(python: Path, place: Path, *parameters: int) -> bytes:
    """Return the last line that its client prints."""
    client = await asyncio.create_subprocess_exec(
        str(python), str(Path(__file__).with_name("client.py")), *map(str, parameters),
        cwd=place, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            printed, _ = await client.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            client.kill()
    if client.returncode:
        raise SystemExit(f"hyperqueue's client ended with {client.returncode}")
    return printed.splitlines()[-1]
