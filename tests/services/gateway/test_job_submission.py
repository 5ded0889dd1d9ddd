"""Streams of descriptions are submitted in parts, and never held whole in memory."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from services.gateway.job_submission import LINES_TYPE, UNCOUNTED_BYTES
from services.gateway.operation import JSON_TYPE
from tests.services.gateway.conftest import Door


async def lines(count: int, *, broken_at: int | None = None) -> AsyncIterator[bytes]:
    for n in range(count):
        yield b"{]\n" if n == broken_at else b'{"executable": "echo", "arguments": ["%d"]}\n' % n


async def stream(
    door: Door, owner: str, body: AsyncIterator[bytes], key: str = ""
) -> tuple[int, dict[str, Any]]:
    more = {"Content-Type": LINES_TYPE} | ({"Idempotency-Key": key} if key else {})
    headers = door.headers(owner, **more)
    async with door.session.post(f"{door.url}/api/v1/jobs", data=body, headers=headers) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


async def test_a_stream_of_lines_becomes_jobs_in_their_order(door: Door, owner: str) -> None:
    status, taken = await stream(door, owner, lines(3_500))
    assert status == 201
    assert sum(high - low + 1 for low, high in taken["ids"]) == 3_500
    _, counts = await door.ask(owner, "GET", "/jobs/counts?everything=true")
    assert counts["counts"] == {"Waiting": 3_500}
    last = taken["ids"][-1][1]
    _, job = await door.ask(owner, "GET", f"/jobs/{last}")
    assert job["description"]["arguments"] == ["3499"]


async def test_a_stream_sent_again_submits_nothing_twice(door: Door, owner: str) -> None:
    _, once = await stream(door, owner, lines(2_100), "tuesday")
    _, twice = await stream(door, owner, lines(2_100), "tuesday")
    assert (once["ids"], twice["repeated"]) == (twice["ids"], True)


async def test_a_fault_tells_its_line_and_what_was_taken_before(door: Door, owner: str) -> None:
    status, problem = await stream(door, owner, lines(5_000, broken_at=4_444))
    assert (status, problem["code"]) == (422, "DESCRIPTION_INVALID")
    assert "line 4445" in problem["detail"]
    _, counts = await door.ask(owner, "GET", "/jobs/counts?everything=true")
    assert counts["counts"]["Waiting"] % 1_000 == 0
    assert f"{counts['counts']['Waiting']:,} jobs" in problem["detail"]


async def test_a_line_without_end_is_refused(door: Door, owner: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 65_536

    status, problem = await stream(door, owner, endless())
    assert (status, problem["code"]) == (413, "LINE_TOO_LARGE")


async def test_an_empty_stream_is_refused(door: Door, owner: str) -> None:
    status, problem = await stream(door, owner, lines(0))
    assert (status, problem["code"]) == (422, "NO_JOBS")


async def test_documents_of_one_owner_leave_memory_to_others(door: Door, owner: str) -> None:
    complete = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'{"executable": "echo"'
        await complete.wait()
        yield b"}"

    async def submit(who: str, body: bytes | AsyncIterator[bytes]) -> int:
        headers = door.headers(who, **{"Content-Type": JSON_TYPE})
        async with door.session.post(f"{door.url}/api/v1/jobs", data=body, headers=headers) as answer:
            return answer.status

    waiting = [asyncio.create_task(submit(owner, slow())) for _ in range(40)]
    refused, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert {each.result() for each in refused} == {429}
    large = b'{"executable": "echo"' + b" " * UNCOUNTED_BYTES + b"}"
    assert await submit(f"{owner}-other", large) == 201
    complete.set()
    assert set(await asyncio.gather(*waiting)) == {201, 429}
