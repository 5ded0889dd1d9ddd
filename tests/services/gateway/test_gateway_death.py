"""A gateway is killed under those who follow their jobs: another one goes on, and tells no event never or twice."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.services.gateway.conftest import Door, a_gateway
from tests.services.gateway.test_event_stream import Follower, submitted
from tests.system.place import Place
from tests.waiting import eventually
from wms.embedded.process import free_port

KILLS = 2


@contextlib.asynccontextmanager
async def a_process(
    place: Place, session: aiohttp.ClientSession
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Run a gateway as a process of its own. Yield its address and the process."""
    port = free_port()
    config = place.root / f"gateway-{port}.toml"
    config.write_text(
        f'[auth]\njwks = "{place.root}/keys/jwks.json"\n[postgres]\nurl = "{place.postgres}"\n'
        f'[kafka]\nbootstrap = "{place.broker.bootstrap}"\nfetch_wait_ms = 0\nidempotent = false\n'
        f"[gateway]\nport = {port}\n"
    )
    with (place.root / "gateway.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.gateway", "--config", config, stderr=log, stdout=log
        )
    url = f"http://127.0.0.1:{port}"

    async def answers() -> bool:
        assert process.returncode is None, (place.root / "gateway.log").read_text()[-2_000:]
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get(f"{url}/api/v1/health") as answer:
                return answer.status == 200
        return False

    try:
        await eventually(answers, 60)
        yield url, process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.timeout(300)
async def test_a_reader_goes_on_at_another_gateway_when_its_own_is_killed(place: Place, owner: str) -> None:
    mine = Follower(owner)
    jobs: list[int] = []
    async with a_gateway(place) as other:
        async with mine.following(other):
            pass
        going_on = asyncio.create_task(_submit_on(other, owner, jobs))
        for _ in range(KILLS):
            await _follow_until_killed(place, other, mine)
            assert not going_on.done()
        async with mine.following(other):
            going_on.cancel()
            await asyncio.wait([going_on])
            last = await submitted(other, owner)
            await eventually(lambda: (last, 2) in mine.moves)
        # The one that was under way at the end may have been taken.
        _, page = await other.ask(owner, "GET", "/jobs?limit=1000")
    taken = [job["job_id"] for job in page["jobs"]]
    assert set(jobs) | {last} <= set(taken)
    assert sorted(mine.moves) == [(job, seq) for job in taken for seq in (1, 2)]
    assert "reset" not in {event for event, _ in mine.told}


async def _follow_until_killed(place: Place, other: Door, mine: Follower) -> None:
    wanted = len(mine.told) + 10
    async with (
        a_process(place, other.session) as (url, process),
        mine.following(Door(place, url, other.session, other.bounds, other.revocations)),
    ):
        await eventually(lambda: len(mine.told) > wanted)
        process.kill()
        await process.wait()


async def _submit_on(door: Door, owner: str, jobs: list[int]) -> None:
    while True:
        jobs.append(await submitted(door, owner))
