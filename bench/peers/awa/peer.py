"""Has awa take jobs that do nothing from a Postgres of the same settings as ours."""

import asyncio
import contextlib
import os
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.measuring import Figures, median, read_line
from bench.peers.pip_environment import install
from wms.embedded.postgres import Postgres

JOBS = 10_000
"""A round."""
WORKERS = 1_024
"""As many at once as its makers measure with."""
CONNECTIONS = 60
"""Of 20 and 60 these were the faster."""
START_SECONDS = 60
ROUND_SECONDS = 120
FAILED = "awa: its client failed"


class _Round(msgspec.Struct):
    seconds: float


class Awa:
    """A client of awa that works when it is asked to."""

    def __init__(self, client: Process) -> None:
        self._client = client

    async def round(self) -> float:
        """Run JOBS jobs; return how many a second. The first round finds an empty database, and is best left out."""
        assert self._client.stdin is not None
        self._client.stdin.write(b"\n")
        async with asyncio.timeout(ROUND_SECONDS):
            line = await read_line(self._client, FAILED)
        return median([JOBS / msgspec.json.decode(line, type=_Round).seconds])

    def figures(self) -> Figures:
        return {"version": "0.6.9", "workers": WORKERS, "jobs_a_round": JOBS}


@asynccontextmanager
async def start() -> AsyncIterator[Awa]:
    """Install it where need be, and start it with a Postgres of its own."""
    python = await asyncio.to_thread(install, "awa")
    with tempfile.TemporaryDirectory(prefix="wms-bench-awa-") as place:
        async with Postgres(Path(place)) as postgres, _client(python, postgres.url) as client:
            yield Awa(client)


@asynccontextmanager
async def _client(python: Path, url: str) -> AsyncIterator[Process]:
    client = await asyncio.create_subprocess_exec(
        str(python), str(Path(__file__).with_name("client.py")), *map(str, (JOBS, WORKERS, CONNECTIONS)),
        stdin=PIPE, stdout=PIPE, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    try:
        assert client.stdin is not None
        # It wants a host's name before the options, where ours has none: the socket is named there.
        client.stdin.write(url.replace("@/", "@localhost/").encode() + b"\n")
        async with asyncio.timeout(START_SECONDS):
            await read_line(client, FAILED)
        yield client
    finally:
        with contextlib.suppress(ProcessLookupError):
            client.kill()
        await client.wait()
