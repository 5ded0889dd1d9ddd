"""Documents that are dear to read, of one user with many connections: others are answered as ever, and the gateway's loop is not held."""

import asyncio
import sys
import time

import aiohttp
import asyncpg
import msgspec

from tests.hostile.document_attack import AttackedGateway
from tests.hostile.target import Target
from tests.waiting import eventually

SECONDS = 20.0
PAUSE_SECONDS = 0.05
SLOWEST_SECONDS = 2.0
"""The 99th of a hundred answers, on two processors that the attack keeps busy."""
HOLD_LIMIT_MS = 100.0
LOOP = "select health->'loop'->'last_minute' from service_instance where service = 'gateway' order by heartbeat_at desc limit 1"


async def test_dear_documents_of_one_user_hold_nobody_else(target: Target) -> None:
    url = f"{target.system.gateway_url}/api/v1"
    # A gateway that starts holds its loop for longer: its modules and routes are made.
    await eventually(lambda: _is_free(target), 90)
    starts = target.system.state().children["gateway"].starts
    attack = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.hostile.document_attack",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert attack.stdin is not None
    gateway = AttackedGateway(url=url, token=target.user_token("mallory-of-documents"))
    attack.stdin.write(msgspec.json.encode(gateway) + b"\n")
    seconds = sorted(await _innocent(url, target.user_token("innocent-reader")))
    held = await _held(target)
    told, _ = await attack.communicate(b"")
    statuses = msgspec.json.decode(told, type=dict[int, int])
    p99 = seconds[len(seconds) * 99 // 100]
    print(f"{statuses}; innocent p99 {p99:.3f} s, slowest {seconds[-1]:.3f} s; loop held {held:.0f} ms")
    assert target.system.state().children["gateway"].starts == starts, "the gateway was killed"
    assert statuses.keys() <= {422, 429}, statuses
    assert statuses[422] > 10
    assert p99 < SLOWEST_SECONDS
    assert held < HOLD_LIMIT_MS


async def _innocent(url: str, token: str) -> list[float]:
    """Ask and submit in turn, for a while; return how many seconds each answer took."""
    found: list[float] = []
    headers = {"Authorization": f"Bearer {token}"}
    ends = time.monotonic() + SECONDS
    async with aiohttp.ClientSession(headers=headers) as session:
        while time.monotonic() < ends:
            began = time.monotonic()
            async with session.get(f"{url}/jobs/counts?everything=true") as answer:
                assert answer.status == 200
            found.append(time.monotonic() - began)
            began = time.monotonic()
            job = {"executable": "/bin/true", "sites": ["nowhere"]}
            async with session.post(f"{url}/jobs", json=job) as answer:
                assert answer.status == 201, await answer.text()
            found.append(time.monotonic() - began)
            await asyncio.sleep(PAUSE_SECONDS)
        async with session.post(f"{url}/jobs/kill", json={"everything": True}) as answer:
            await answer.read()
    return found


async def _is_free(target: Target) -> bool:
    return await _held(target) < HOLD_LIMIT_MS


async def _held(target: Target) -> float:
    """Return the longest hold of the gateway's event loop in the last minute, in milliseconds of processor time."""
    connection = await asyncpg.connect(target.database)
    try:
        told = await connection.fetchval(LOOP)
    finally:
        await connection.close()
    hold = msgspec.json.decode(told) if told else None
    return float(hold["processor_ms"]) if hold else 0.0
