"""A pilot's secret is exchanged through a gateway that can read neither the secret nor the answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from services.gateway import pilot_exchanges
from services.job_agent.secret_exchange import exchanged
from tests.services.job_agent.links import PilotsGateway, broker_settings, pilots_gateway
from wms.auth.orders import OrderKeys, PilotCredential
from wms.bus.inbox import Inbox
from wms.bus.kafka import Kafka
from wms.bus.topics import SHARED, find
from wms.embedded.kafka_broker import KafkaBroker
from wms.errors import Rejected
from wms.messages.pilot_exchange import (
    ANSWERS_TOPIC,
    TOPIC,
    ExchangeAnswer,
    ExchangeRefusal,
    SealedCredential,
    SecretExchange,
)
from wms.messages.wire import Codec, encode

ORDERS = OrderKeys([b"k" * 32])
SECRET = ORDERS.secrets_of("p-1")[0]
CREDENTIAL = PilotCredential("a.b.c", "00" * 32)


class Services:
    """The service that exchanges secrets, played by the test."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.kafka = Kafka(broker_settings(broker), "services")
        self.asked: list[SecretExchange] = []
        self.answer: Callable[[SecretExchange], ExchangeAnswer | None] = granted

    async def run(self, opened: asyncio.Event) -> None:
        reader = await self.kafka.reader(TOPIC)
        await reader.assign_end(find(TOPIC).partitions)
        codec: Codec[SecretExchange] = Codec(SecretExchange)
        opened.set()
        try:
            while True:
                for record in await reader.poll(0.1, 100):
                    assert not record.token
                    await self._answer(codec.decode(record.payload))
        finally:
            await reader.close()

    async def _answer(self, asked: SecretExchange) -> None:
        self.asked.append(asked)
        if (answer := self.answer(asked)) is not None:
            await self.kafka.send(ANSWERS_TOPIC, asked.pilot_id, encode(answer))


def granted(asked: SecretExchange) -> SealedCredential:
    assert SECRET.is_proof(asked.proof, asked.exchange_id)
    sealed = SECRET.seal(asked.exchange_id, CREDENTIAL.text)
    return SealedCredential(pilot_id=asked.pilot_id, exchange_id=asked.exchange_id, sealed=sealed)


@pytest_asyncio.fixture(loop_scope="session")
async def services(broker: KafkaBroker) -> AsyncIterator[Services]:
    made, opened = Services(broker), asyncio.Event()
    await made.kafka.start(SHARED)
    running = asyncio.create_task(made.run(opened))
    await opened.wait()
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await made.kafka.close()


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(broker: KafkaBroker, tmp_path: Path) -> AsyncIterator[PilotsGateway]:
    async with pilots_gateway(broker, tmp_path, answer_seconds=5.0) as made:
        yield made


async def test_the_pilot_gets_what_was_sealed_for_it(gateway: PilotsGateway, services: Services) -> None:
    assert await exchanged(gateway.access, SECRET) == CREDENTIAL
    # Nothing on the way has the secret, the token or the key.
    for hidden in (SECRET.secret.hex(), CREDENTIAL.token, CREDENTIAL.key):
        assert hidden not in encode(services.asked[0]).decode()
        assert hidden not in encode(granted(services.asked[0])).decode()


async def test_a_refused_exchange_is_told_with_its_reason_and_not_tried_again(
    gateway: PilotsGateway, services: Services
) -> None:
    services.answer = lambda asked: ExchangeRefusal(
        pilot_id=asked.pilot_id, exchange_id=asked.exchange_id, code="SECRET_USED", text="used before"
    )
    with pytest.raises(Rejected, match="used before") as caught:
        await exchanged(gateway.access, SECRET)
    assert caught.value.code == "SECRET_USED"
    assert len(services.asked) == 1


async def test_a_lost_question_is_asked_again_under_the_same_exchange(
    gateway: PilotsGateway, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot_exchanges, "AGAIN_SECONDS", 0.2)
    services.answer = lambda asked: granted(asked) if len(services.asked) > 2 else None
    assert await exchanged(gateway.access, SECRET) == CREDENTIAL
    assert len({each.exchange_id for each in services.asked}) == 1


async def test_answers_of_others_and_forged_ones_give_a_pilot_nothing(
    gateway: PilotsGateway, services: Services
) -> None:
    liar = OrderKeys([b"?" * 32]).secrets_of("p-1")[0]
    services.answer = lambda asked: SealedCredential(
        pilot_id=asked.pilot_id,
        exchange_id=asked.exchange_id,
        sealed=liar.seal(asked.exchange_id, "their.own.token " + "11" * 32),
    )
    with pytest.raises(Rejected, match="SEAL_BROKEN"):
        await exchanged(gateway.access, SECRET)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", 422),
        (b'{"exchange_id":"x","proof":"p"}', 422),
        (b'{"exchange_id":"' + b"0" * 32 + b'","proof":"' + b"p" * 5_000 + b'"}', 413),
        (b'{"exchange_id":"' + b"0" * 32 + b'","proof":"p"}', 503),
    ],
)
async def test_what_is_no_exchange_or_nobody_answers_is_told(
    gateway: PilotsGateway, services: Services, body: bytes, status: int
) -> None:
    services.answer = lambda _: None
    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{gateway.url}/pilots/p-1/credential", data=body, headers=headers) as answer,
    ):
        assert answer.status == status, await answer.read()


async def test_answers_stand_encrypted_on_their_topic(gateway: PilotsGateway, services: Services) -> None:
    codec: Codec[Any] = Codec(ExchangeAnswer)
    inbox = Inbox(services.kafka, find(ANSWERS_TOPIC), codec)
    await inbox.start()
    await exchanged(gateway.access, SECRET)
    (answer,) = await inbox.poll(10)
    await inbox.close()
    assert CREDENTIAL.token not in msgspec.json.encode(answer).decode()
