"""The host of the database vanishes without a word, and another takes its place: submissions are taken again within 30 s."""

import asyncio
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.system.vanishing_host import PORT, VanishingHost, is_possible
from tests.waiting import eventually
from wms.embedded.postgres import Postgres
from wms.embedded.system import System

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not is_possible(), reason="only root may drop packets, by iptables"),
]

AWAY_SECONDS = 10.0
"""How long the database is nowhere: until its other host has been told to take over."""
LIMIT_SECONDS = 30.0


class Submitting:
    """Submits jobs, and notes the statuses of the answers and when the last one was taken."""

    def __init__(self, system: System) -> None:
        self._url = f"{system.gateway_url}/api/v1/jobs"
        token = system.layout.user_token.read_text("utf-8").strip()
        self._headers = {"Authorization": f"Bearer {token}"}
        self.statuses: dict[int, int] = {}
        self.taken_at = 0.0

    async def run(self) -> None:
        """Submit a job each second, whether the last one was answered or not."""
        async with aiohttp.ClientSession(headers=self._headers) as session, asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._submit(session))
                await asyncio.sleep(1.0)

    async def _submit(self, session: aiohttp.ClientSession) -> None:
        async with session.post(self._url, json={"executable": "/bin/true"}) as answer:
            self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
            if answer.ok:
                self.taken_at = time.monotonic()
            else:
                assert "Retry-After" in answer.headers, await answer.text()


async def test_a_database_whose_host_vanishes_costs_at_most_half_a_minute(tmp_path: Path) -> None:
    async with Postgres(tmp_path / "postgres", durable=False) as postgres:
        known = urlsplit(await postgres.ensure_database("wms"))
        socket = postgres.sockets / f".s.PGSQL.{PORT}"
        async with VanishingHost(socket).there() as first, VanishingHost(socket).there() as second:
            await first.serve()
            login = known.netloc.rpartition("@")[0]
            url = f"postgresql://{login}@{first.address}:{PORT},{second.address}:{PORT}{known.path}"
            async with System(
                tmp_path / "system", postgres=url, slots=1, durable=False, pilots={"isolation": "none"}
            ) as system:
                submitting = Submitting(system)
                task = asyncio.create_task(submitting.run())
                await eventually(lambda: submitting.taken_at)
                starts = {name: each.starts for name, each in system.state().children.items()}
                await first.vanish()
                await asyncio.sleep(AWAY_SECONDS)
                await second.serve()
                back_at = time.monotonic()
                await eventually(lambda: submitting.taken_at > back_at or task.done(), within=120)
                sys.stderr.write(
                    f"taken again after {submitting.taken_at - back_at:.1f} s: {submitting.statuses}\n"
                )
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled(), task.exception()
                assert submitting.taken_at - back_at < LIMIT_SECONDS
                assert submitting.statuses.keys() <= {200, 201, 202, 503}
                assert {name: each.starts for name, each in system.state().children.items()} == starts
