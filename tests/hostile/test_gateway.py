"""Attacks on the gateway, beside which a user who comes through it waits no longer than usual."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from services.gateway.http_connection import PIPELINED
from tests.hostile.innocent import Innocent
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client
from wms.client.settings import GatewayAddress

MALLORY = "mallory-at-the-gate"
BESIDE_SECONDS = 20.0
CONNECTIONS = 600
"""More than one address may have."""
LINE = b'{"executable":"/bin/true","arguments":["%d"],"sites":["nowhere"]}\n'


class Gate:
    """The gateway as an attacker sees it, who has tokens of one user."""

    def __init__(self, target: Target, session: aiohttp.ClientSession) -> None:
        self.url = target.system.gateway_url
        self.session = session
        self.port = int(self.url.rpartition(":")[2])
        self.tokens = itertools.cycle([target.user_token(MALLORY) for _ in range(4)])

    def headers(self, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {next(self.tokens)}", **more}

    async def post(self, path: str, body: object, kind: str) -> int:
        headers = self.headers(**{"Content-Type": kind})
        async with self.session.post(f"{self.url}/api/v1{path}", data=body, headers=headers) as answer:
            await answer.read()
            return answer.status

    async def get(self, path: str, **headers: str) -> int:
        async with self.session.get(f"{self.url}/api/v1{path}", headers=headers or self.headers()) as answer:
            await answer.read()
            return answer.status


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remote(running: Target) -> AsyncIterator[Innocent]:
    """Yield an innocent user who comes through the gateway."""
    settings = running.settings(Innocent.owner)
    gateway = GatewayAddress(url=running.system.gateway_url)
    async with Client.connect(msgspec.structs.replace(settings, gateway=gateway)) as client:
        innocent = Innocent(client, running)
        await innocent.learn_usual()
        yield innocent


async def _again(act: Callable[[], Awaitable[object]]) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            await act()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def attacking(target: Target, *acts: Callable[[Gate], Awaitable[object]]) -> AsyncIterator[Gate]:
    """Act again and again, each act beside the others."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        gate = Gate(target, session)
        tasks = [asyncio.create_task(_again(lambda act=act: act(gate))) for act in acts]  # type: ignore[misc]  # bound early
        try:
            yield gate
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _flood(gate: Gate) -> None:
    await gate.post("/jobs", _lines(), "application/x-ndjson")


async def _lines() -> AsyncIterator[bytes]:
    for first in range(0, 20_000, 500):
        yield b"".join(LINE % n for n in range(first, first + 500))


async def _large(gate: Gate) -> None:
    body = b"[" + b",".join(LINE % n for n in range(60_000)) + b"7]"
    assert await gate.post("/jobs", body, "application/json") in (422, 429)


async def _forged(gate: Gate) -> None:
    status = await gate.get("/sites", Authorization="Bearer a.b.c")
    assert status in (401, 429)


async def _from_the_beginning(gate: Gate) -> None:
    async with gate.session.get(f"{gate.url}/api/v1/events", headers=gate.headers()) as answer:
        first = (await answer.content.readline()).decode().split()[-1] if answer.status == 200 else ""
    if not first:
        return
    begin = first.partition("-")[0] + "-0-0-0-0"
    async with gate.session.get(
        f"{gate.url}/api/v1/events", headers=gate.headers(**{"Last-Event-ID": begin})
    ) as answer:
        for _ in range(200):
            await answer.content.readline()


async def _for_a_while() -> None:
    await asyncio.sleep(BESIDE_SECONDS)


@pytest.mark.parametrize(
    "acts",
    [[_flood] * 12, [_large] * 6, [_forged] * 20, [_from_the_beginning] * 20],
    ids=["streams", "documents", "forged", "replays"],
)
async def test_requests_of_one_user_do_not_hold_up_another(
    target: Target, remote: Innocent, acts: list[Callable[[Gate], Awaitable[object]]]
) -> None:
    async with remote.beside(), attacking(target, *acts):
        await _for_a_while()


async def test_connections_that_say_little_or_never_read_hold_up_nobody(
    target: Target, remote: Innocent
) -> None:
    held: list[asyncio.StreamWriter] = []
    async with attacking(target) as gate, remote.beside():
        token = gate.headers()["Authorization"]
        for n in range(CONNECTIONS):
            with contextlib.suppress(OSError):
                held.append(await _silent(gate.port, token, n))
        await _for_a_while()
        # They have been cut off meanwhile or will be: the next one is let in.
        await eventually(lambda: gate.get("/sites"), 60)
    for each in held:
        each.close()


async def _silent(port: int, token: str, n: int) -> asyncio.StreamWriter:
    """Open a connection that asks a little or much, and never reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    _, writer = await asyncio.open_connection(sock=sock, limit=1_024)
    head = f"Host: x\r\nAuthorization: {token}\r\n"
    asks = [
        b"",
        b"GET /api/v1/sites HTTP/1.1\r\nX: ",
        f"GET /api/v1/events HTTP/1.1\r\n{head}\r\n".encode(),
        f"POST /api/v1/jobs HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n[".encode(),
        b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * PIPELINED,
    ]
    writer.write(asks[n % len(asks)])
    return writer
