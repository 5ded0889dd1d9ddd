"""Thousands of streams and huge reports of one pilot, from a process of its own: `python -m tests.hostile.stream_attack` with a Target on stdin.

It attacks until its input ends. After each wave it prints how many streams it has asked for, and the statuses of all answers so far.
"""

import asyncio
import contextlib
import sys

import aiohttp
import msgspec

WAVE = 250
"""Streams that are asked for at a time."""
HUGE_REPORTS = 5
"""Reports beside the streams of a wave."""
REPORT_BYTES = 4_000_000


class AttackedPilot(msgspec.Struct, frozen=True, kw_only=True):
    """The pilot's address at the gateway, and its token."""

    url: str
    token: str


class Wave(msgspec.Struct, frozen=True, kw_only=True):
    """What the attack has done so far. A status of 0 stands for a connection that was cut."""

    streams: int = 0
    statuses: frozenset[int] = frozenset()


async def attack(pilot: AttackedPilot) -> None:
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=60)
    done = Wave()
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, headers={"Authorization": f"Bearer {pilot.token}"}
    ) as session:
        while not ended.done():
            done = await _wave(session, pilot.url, done)
            sys.stdout.write(msgspec.json.encode(done).decode() + "\n")
            sys.stdout.flush()


async def _wave(session: aiohttp.ClientSession, url: str, before: Wave) -> Wave:
    streams = [_status(session, "GET", f"{url}/orders") for _ in range(WAVE)]
    kind = {"Content-Type": "application/json"}
    reports = [
        _status(session, "POST", f"{url}/messages", data=b"[" * REPORT_BYTES, headers=kind)
        for _ in range(HUGE_REPORTS)
    ]
    statuses = await asyncio.gather(*streams, *reports)
    return Wave(streams=before.streams + WAVE, statuses=before.statuses | frozenset(statuses))


async def _status(session: aiohttp.ClientSession, method: str, url: str, **more: object) -> int:
    with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with session.request(method, url, **more) as answer:  # type: ignore[arg-type]  # data, headers
            return answer.status
    return 0


if __name__ == "__main__":
    asyncio.run(attack(msgspec.json.decode(sys.stdin.readline(), type=AttackedPilot)))
