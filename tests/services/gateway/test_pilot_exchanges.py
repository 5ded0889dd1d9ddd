"""Exchanges on their way through a gateway: who asks the same gets the same answer, and only so many wait."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.gateway import pilot_exchanges
from services.gateway.pilot_exchanges import ExchangeAnswers
from services.gateway.problem import TooMany
from tests.services.job_agent.links import broker_settings
from tests.waiting import eventually
from wms.bus.grouped_sends import GroupedSends
from wms.bus.kafka import Kafka
from wms.bus.topics import SHARED
from wms.embedded.kafka_broker import KafkaBroker
from wms.errors import Unavailable
from wms.ids import PilotId
from wms.messages.pilot_exchange import ANSWERS_TOPIC, SealedCredential, SecretExchange
from wms.messages.wire import encode


@pytest_asyncio.fixture(loop_scope="session")
async def kafka(broker: KafkaBroker) -> AsyncIterator[Kafka]:
    made = Kafka(broker_settings(broker), "gateway")
    await made.start(SHARED)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def answers(kafka: Kafka) -> AsyncIterator[ExchangeAnswers]:
    made = ExchangeAnswers(kafka, GroupedSends(kafka))
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.wait([running])


def exchange(number: int) -> SecretExchange:
    return SecretExchange(pilot_id=PilotId("p-1"), exchange_id=f"{number:032x}", proof="p")


def sealed(asked: SecretExchange) -> SealedCredential:
    return SealedCredential(pilot_id=asked.pilot_id, exchange_id=asked.exchange_id, sealed="s")


async def test_each_gets_the_answer_to_its_own_exchange(answers: ExchangeAnswers, kafka: Kafka) -> None:
    asking = [asyncio.create_task(answers.ask(exchange(number), 20)) for number in (1, 2, 1)]
    await eventually(lambda: len(answers._waiting) == 2 and answers._is_read.is_set())
    for number in (2, 1):
        await kafka.send(ANSWERS_TOPIC, "p-1", encode(sealed(exchange(number))))
    assert await asyncio.gather(*asking) == [sealed(exchange(number)) for number in (1, 2, 1)]
    assert not answers._waiting


async def test_an_exchange_that_nobody_answers_ends_and_leaves_nothing(answers: ExchangeAnswers) -> None:
    with pytest.raises(Unavailable):
        await answers.ask(exchange(1), 0.3)
    assert not answers._waiting


async def test_only_so_many_wait(answers: ExchangeAnswers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pilot_exchanges, "WAITING_LIMIT", 1)
    waiting = asyncio.create_task(answers.ask(exchange(1), 20))
    await eventually(lambda: bool(answers._waiting))
    with pytest.raises(TooMany):
        await answers.ask(exchange(2), 20)
    waiting.cancel()
