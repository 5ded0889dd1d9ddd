"""The stream of a pilot's orders: for that pilot alone, one at a time, and no memory for who does not read."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio

from services.gateway import order_stream
from services.gateway.config import RequestLimits
from tests.services.job_agent.links import PilotsGateway, broker_settings, pilots_gateway
from tests.waiting import eventually
from wms.auth.keys import load_key
from wms.auth.revocations import Revocation
from wms.auth.token import Claims, mint
from wms.bus.kafka import Kafka
from wms.bus.topics import site_inbox_of
from wms.embedded.kafka_broker import KafkaBroker
from wms.runtime import clock

SITE = "cern"
INBOX = site_inbox_of(SITE).name


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(
    broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PilotsGateway]:
    async with pilots_gateway(broker, tmp_path_factory.mktemp("gateway")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kafka(broker: KafkaBroker) -> AsyncIterator[Kafka]:
    made = Kafka(broker_settings(broker), "services")
    await made.start()
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


class Following:
    """One open stream."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> bytes:
        """Return the next order; empty at the end of the stream."""
        async with asyncio.timeout(20):
            while line := await self.answer.content.readline():
                if line.startswith(b"data: "):
                    return line[6:].rstrip(b"\n")
        return b""


async def follow(
    session: aiohttp.ClientSession, gateway: PilotsGateway, pilot_id: str, token: str = ""
) -> Following:
    token = token or gateway.token(pilot_id, SITE)
    answer = await session.get(
        f"{gateway.url}/pilots/{pilot_id}/orders", headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status == 200, await answer.text()
    assert await answer.content.readline() == b":\n"
    return Following(answer)


async def test_each_pilot_gets_its_own_orders_untouched(
    gateway: PilotsGateway, kafka: Kafka, session: aiohttp.ClientSession
) -> None:
    one, two = await follow(session, gateway, "p-1"), await follow(session, gateway, "p-2")
    for number in range(3):
        for pilot_id in ("p-1", "p-2", "p-absent"):
            await kafka.send(
                INBOX, pilot_id, b'{"macs":["%d"],"order":{"to":"%b"}}' % (number, pilot_id.encode())
            )
    for following, name in ((one, b"p-1"), (two, b"p-2")):
        for number in range(3):
            assert await following.next() == b'{"macs":["%d"],"order":{"to":"%b"}}' % (number, name)
    assert gateway.pilots.inboxes.sites == 1


async def test_the_newest_stream_of_a_pilot_gets_its_orders_and_the_one_before_ends(
    gateway: PilotsGateway, kafka: Kafka, session: aiohttp.ClientSession
) -> None:
    before = await follow(session, gateway, "p-twice")
    after = await follow(session, gateway, "p-twice")
    assert await before.next() == b""
    await kafka.send(INBOX, "p-twice", b"{}")
    assert await after.next() == b"{}"


@pytest.mark.parametrize(
    ("kind", "status"),
    [("another pilot", 403), ("user", 403), ("site", 403), ("nobody", 401), ("expired", 401)],
)
async def test_nobody_follows_the_orders_of_a_pilot_that_he_is_not(
    gateway: PilotsGateway, session: aiohttp.ClientSession, kind: str, status: int
) -> None:
    keys = gateway.root / "keys"
    now = clock.timestamp()
    user = Claims(kind="user", owner="p-1", group="g", vo="v", rights=frozenset({"operator"}))
    expired = Claims(kind="pilot", owner="o", group="g", vo="v", pilot_id="p-1", site=SITE, ce="ce")
    token = {
        "another pilot": gateway.token("p-2", SITE),
        "user": mint(load_key(keys / "issuer.pem"), user, 60, now),
        "site": mint(load_key(keys / "sites.pem"), Claims(kind="site", owner="s", site=SITE), 60, now),
        "nobody": "a.b.c",
        "expired": mint(load_key(keys / "pilots.pem"), expired, 60, now - 600),
    }[kind]
    for method, path in (("GET", "orders"), ("POST", "messages")):
        async with session.request(
            method,
            f"{gateway.url}/pilots/p-1/{path}",
            headers={"Authorization": f"Bearer {token}"},
            json={"messages": [{"type": "report", "report_id": "r", "pilot_id": "p-1"}]},
        ) as answer:
            assert answer.status == status, await answer.text()


async def test_a_stream_ends_with_its_token(gateway: PilotsGateway, session: aiohttp.ClientSession) -> None:
    following = await follow(session, gateway, "p-short", gateway.token("p-short", SITE, lifetime=2))
    assert await following.next() == b""


async def test_a_stream_ends_once_its_pilot_is_revoked(
    gateway: PilotsGateway, kafka: Kafka, session: aiohttp.ClientSession
) -> None:
    following = await follow(session, gateway, "p-revoked")
    gateway.revocations.replace([Revocation("pilot", "p-revoked")])
    try:
        await kafka.send(INBOX, "p-revoked", b"{}")
        assert await following.next() == b""
    finally:
        gateway.revocations.replace([])


async def test_a_pilot_that_goes_away_is_attached_no_more(
    gateway: PilotsGateway, session: aiohttp.ClientSession
) -> None:
    before = gateway.pilots.inboxes.pilots
    following = await follow(session, gateway, "p-gone")
    assert gateway.pilots.inboxes.pilots == before + 1
    following.answer.close()
    await eventually(lambda: gateway.pilots.inboxes.pilots == before)


async def test_a_reader_that_does_not_read_is_cut_off_and_holds_no_memory(
    gateway: PilotsGateway, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_stream, "WRITE_SECONDS", 1.0)
    parts = urlsplit(gateway.url)
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        await asyncio.to_thread(lazy.connect, (parts.hostname, parts.port))
        token = gateway.token("p-lazy", SITE)
        head = (
            f"GET /api/v1/pilots/p-lazy/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        lazy.sendall(head.encode())
        streams = lambda: [  # noqa: E731
            each for inbox in gateway.pilots.inboxes._inboxes.values() for each in inbox.streams.values()
        ]
        await eventually(lambda: any(each.pilot_id == "p-lazy" for each in streams()))
        for _ in range(8):
            await kafka.send(INBOX, "p-lazy", b"x" * 900_000)
        await eventually(lambda: not any(each.pilot_id == "p-lazy" for each in streams()))
        assert gateway.pilots.inboxes._waiting.now == 0
        await eventually(lambda: _is_cut(lazy))


def _is_cut(lazy: socket.socket) -> bool:
    """Return whether the connection was reset, after reading what had been sent."""
    lazy.setblocking(False)
    try:
        while lazy.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


async def test_pilots_have_budgets_of_their_own(broker: KafkaBroker, tmp_path: Path) -> None:
    limits = RequestLimits(pilot_per_second=0.01, pilot_burst=2, owner_per_second=0.01, owner_burst=1)
    async with pilots_gateway(broker, tmp_path, limits) as gateway, aiohttp.ClientSession() as session:
        # All generic pilots have one owner.
        for number in range(4):
            await follow(session, gateway, f"p-{number}")
        for status in (200, 429):
            async with session.get(
                f"{gateway.url}/pilots/p-1/orders", headers=gateway.headers("p-1", SITE)
            ) as answer:
                assert answer.status == status


async def test_a_gateway_that_ends_ends_its_streams(broker: KafkaBroker, tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        async with pilots_gateway(broker, tmp_path) as gateway:
            following = await follow(session, gateway, "p-1")
        assert await following.next() == b""
