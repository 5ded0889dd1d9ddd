"""Live events: none missed and none twice, over reconnects and the death of a gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import msgspec

from services.gateway.event_stream import QUIET_SECONDS
from tests.services.gateway.conftest import Door, a_gateway
from tests.system.place import Place
from tests.waiting import eventually
from wms.auth.revocations import Revocation

HELLO = {"executable": "echo", "arguments": ["hello"]}


class Follower:
    """Reads a stream, and remembers its last id as a browser does."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.last_id = ""
        self.told: list[tuple[str, Any]] = []

    @contextlib.asynccontextmanager
    async def following(self, door: Door) -> AsyncIterator[None]:
        before = self.last_id
        task = asyncio.create_task(self._read(door))
        try:
            await eventually(lambda: self.last_id and (not before or not task.done()))
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _read(self, door: Door) -> None:
        headers = door.headers(self.owner, **({"Last-Event-ID": self.last_id} if self.last_id else {}))
        async with door.session.get(
            f"{door.url}/api/v1/events", headers=headers, timeout=aiohttp.ClientTimeout(total=None)
        ) as answer:
            assert answer.status == 200
            block: dict[str, str] = {}
            async for line in answer.content:
                name, _, value = line.decode().strip().partition(": ")
                if name:
                    block[name] = value
                    continue
                self.last_id = block["id"]
                if "data" in block:
                    self.told.append((block["event"], msgspec.json.decode(block["data"])))
                block = {}

    @property
    def moves(self) -> list[tuple[int, int]]:
        """The moves that were told: job and seq."""
        return [move for event, data in self.told for move in _moves(event, data)]


def _moves(event: str, data: Any) -> Iterator[tuple[int, int]]:
    match event:
        case "job-event":
            yield data["job_id"], data["seq"]
        case "jobs-moved":
            yield from ((each["job_id"], each["seq"]) for each in data["events"])
        case "jobs-queued":
            yield from ((data["first"] + n, seq) for n in range(data["count"]) for seq in (1, 2))


async def submitted(door: Door, owner: str) -> int:
    _, taken = await door.ask(owner, "POST", "/jobs", HELLO)
    job_id: int = taken["ids"][0][0]
    return job_id


async def ordered(door: Door, owner: str, action: str, job_id: int) -> None:
    order = {"action": action, "selection": {"jobs": str(job_id)}}
    assert (await door.ask(owner, "POST", "/orders", order))[1]["changed"] == 1


async def test_the_moves_of_own_jobs_are_told_and_no_others(door: Door, owner: str) -> None:
    mine = Follower(owner)
    async with mine.following(door):
        other = await submitted(door, f"{owner}-other")
        job_id = await submitted(door, owner)
        await ordered(door, owner, "hold", job_id)
        await eventually(lambda: (job_id, 3) in mine.moves)
    assert mine.moves == [(job_id, 1), (job_id, 2), (job_id, 3)]
    assert other not in {job for job, _ in mine.moves}


async def test_a_reader_goes_on_from_its_last_event(door: Door, owner: str) -> None:
    mine = Follower(owner)
    async with mine.following(door):
        first = await submitted(door, owner)
        await eventually(lambda: (first, 2) in mine.moves)
    second = await submitted(door, owner)
    await ordered(door, owner, "hold", first)
    async with mine.following(door):
        await eventually(lambda: {(second, 2), (first, 3)} <= set(mine.moves))
    assert sorted(mine.moves) == [(first, 1), (first, 2), (first, 3), (second, 1), (second, 2)]


async def test_none_is_missed_and_none_comes_twice_over_the_death_of_gateways(
    place: Place, owner: str
) -> None:
    mine = Follower(owner)
    jobs: list[int] = []
    for _ in range(3):
        async with a_gateway(place) as door, mine.following(door):
            jobs.append(await submitted(door, owner))
            await eventually(lambda: (jobs[-1], 2) in mine.moves)
        async with a_gateway(place) as door:
            # Nobody follows this one.
            jobs.append(await submitted(door, owner))
    async with a_gateway(place) as door, mine.following(door):
        await eventually(lambda: {job for job, _ in mine.moves} == set(jobs))
    assert sorted(mine.moves) == [(job, seq) for job in jobs for seq in (1, 2)]


async def test_an_id_of_another_broker_is_told_to_begin_anew(door: Door, owner: str) -> None:
    mine = Follower(owner)
    mine.last_id = "00000000-1-2-3-4"
    async with mine.following(door):
        await eventually(lambda: mine.told)
    assert mine.told[0][0] == "reset"


async def test_what_is_no_id_is_refused(door: Door, owner: str) -> None:
    headers = door.headers(owner, **{"Last-Event-ID": "yesterday"})
    async with door.session.get(f"{door.url}/api/v1/events", headers=headers) as answer:
        problem = await answer.json(content_type="application/problem+json")
        assert (answer.status, problem["code"]) == (422, "BAD_EVENT_ID")


async def test_a_stream_ends_soon_after_its_user_was_revoked(door: Door, owner: str) -> None:
    url, timeout = f"{door.url}/api/v1/events", aiohttp.ClientTimeout(total=None)
    async with door.session.get(url, headers=door.headers(owner), timeout=timeout) as answer:
        await answer.content.readuntil(b"\n\n")
        door.revocations.replace([Revocation("subject", owner)])
        try:
            # Sooner than the place is told anew, when a stream writes anyway.
            async with asyncio.timeout(QUIET_SECONDS - 2):
                assert await answer.content.read() == b""
        finally:
            door.revocations.replace([])
