"""Messages of pilots are stored for the services under the pilot's token, bounded, and refused before if they could not be read."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from tests.services.job_agent.links import PilotsGateway, broker_settings, pilots_gateway
from tests.waiting import eventually
from wms.bus.kafka import Kafka, Message
from wms.bus.topics import find
from wms.embedded.kafka_broker import KafkaBroker
from wms.messages import match_requests, reports

SITE = "cern"
ASKS = {
    "type": "match-request",
    "request_id": "r-1",
    "pilot_id": "p-1",
    "resource": {"setup": "", "vo": "v", "cpu_time": 1},
    "of a later version": 1,
}
REPORTS = {"type": "report", "report_id": "a-1", "pilot_id": "p-1"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(
    broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PilotsGateway]:
    async with pilots_gateway(broker, tmp_path_factory.mktemp("gateway"), read_seconds=1.0) as made:
        yield made


async def posted(
    gateway: PilotsGateway, body: Any, pilot_id: str = "p-1", **headers: str
) -> tuple[int, dict[str, Any]]:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    sent = {"Content-Type": "application/json", **gateway.headers(pilot_id, SITE), **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{gateway.url}/pilots/{pilot_id}/messages", data=raw, headers=sent) as answer,
    ):
        return answer.status, msgspec.json.decode(await answer.read())


async def stored(broker: KafkaBroker, topic: str, pilot_id: str) -> list[Message]:
    kafka = Kafka(broker_settings(broker), "services")
    await kafka.start()
    reader = await kafka.reader(topic)
    reader.assign(dict.fromkeys(range(find(topic).partitions), 0))
    found: list[Message] = []

    async def any_there() -> bool:
        found.extend(each for each in await reader.poll(0.2, 1_000) if each.key == pilot_id.encode())
        return bool(found)

    await eventually(any_there)
    await reader.close()
    await kafka.close()
    return found


async def test_each_message_goes_to_its_topic_as_it_is_under_the_pilots_key_and_token(
    gateway: PilotsGateway, broker: KafkaBroker
) -> None:
    assert await posted(gateway, {"messages": [ASKS, REPORTS]}) == (202, {"taken": 2})
    for topic, message in ((match_requests.TOPIC, ASKS), (reports.TOPIC, REPORTS)):
        (found,) = await stored(broker, topic, "p-1")
        assert msgspec.json.decode(found.payload) == message
        assert gateway.verified(found.token).pilot_id == "p-1"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", "BODY_INVALID"),
        ({"messages": []}, "BODY_INVALID"),
        ({"messages": [REPORTS] * 101}, "BODY_INVALID"),
        ({"messages": [REPORTS], "more": 1}, "BODY_INVALID"),
        ({"messages": [{"type": "kill", "pilot_id": "p-1", "jobs": []}]}, "MESSAGE_INVALID"),
        ({"messages": [{**REPORTS, "slots": -1}]}, "MESSAGE_INVALID"),
        ({"messages": [{**REPORTS, "pilot_id": "p-2"}]}, "NOT_ALLOWED"),
        ({"messages": [REPORTS, {**ASKS, "pilot_id": "p-2"}]}, "NOT_ALLOWED"),
        (b'{"messages":[%b]}' % (b" " * 1_000_000), "BODY_TOO_LARGE"),
        (b'{"messages":[' + b"[" * 100_000, "BODY_INVALID"),
    ],
)
async def test_what_the_services_could_not_read_or_is_anothers_never_leaves(
    gateway: PilotsGateway, body: Any, code: str
) -> None:
    status, problem = await posted(gateway, body)
    assert problem["code"] == code
    assert 400 <= status < 500


async def test_a_body_that_comes_drop_by_drop_is_given_up(gateway: PilotsGateway) -> None:
    async def drops() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" "
            await asyncio.sleep(0.1)

    headers = {"Content-Type": "application/json", **gateway.headers("p-1", SITE)}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{gateway.url}/pilots/p-1/messages", data=drops(), headers=headers) as answer,
    ):
        assert (answer.status, (await answer.json(content_type=None))["code"]) == (408, "BODY_TOO_SLOW")
