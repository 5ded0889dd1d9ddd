"""Orders to skip a message, carried out on a real broker or written down as failed."""

import time
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from services.job_manager.maintenance.skip_orders import ATTEMPTS, SkipOrders
from tests.contract.bus.instances import PARTITIONS, Bus, Keys, Note
from tests.waiting import eventually
from wms.bus.blocked_messages import MessagePosition, blocking
from wms.db import offset, skip_order
from wms.db.offset import ConsumedTopic
from wms.db.skip_order import SkipRequest
from wms.embedded.kafka_broker import KafkaBroker
from wms.messages.wire import encode


@pytest_asyncio.fixture(loop_scope="session")
async def bus(
    broker: KafkaBroker, database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Bus]:
    keys = Keys(tmp_path_factory.mktemp("keys") / "keys")
    async with Bus.opened(broker, database, keys) as each:
        yield each


def skips(bus: Bus) -> SkipOrders:
    return SkipOrders(bus.db, bus.kafka, partial(bus.keys.verifier.verify, now=time.time()))


async def order(bus: Bus, blocked: MessagePosition) -> None:
    wanted = SkipRequest(
        operator="oz",
        feed=ConsumedTopic(bus.kafka.cluster_id, blocked.consumer, blocked.topic),
        partition=blocked.partition,
        offset=blocked.offset,
        reason="too slow",
    )
    async with bus.db.transaction() as tx:
        await skip_order.put(tx, wanted)


async def actions(bus: Bus) -> list[tuple[str, ...]]:
    rows = await bus.sql("select action, subject, reason from operator_order order by operator_order_id")
    return [tuple(row) for row in rows]


async def unhandled(bus: Bus) -> MessagePosition:
    """Send a message to a consumer that never runs, and return where it is."""
    feed = ConsumedTopic(bus.kafka.cluster_id, "absent", bus.topic.name)
    async with bus.db.transaction() as tx:
        await offset.begin(tx, feed, range(PARTITIONS))
    await bus.send_raw([encode(Note(n=1))])
    (found,) = await eventually(partial(blocking, bus.db, bus.kafka, 0.0))
    return found.position


async def test_an_order_waits_while_the_message_is_handled_and_is_then_carried_out(bus: Bus) -> None:
    blocked = await unhandled(bus)
    await order(bus, blocked)
    async with bus.db.transaction() as handling:
        await handling.fetch("select 1 from consumer_offset for update")
        assert await skips(bus).look()
        assert await bus.sql("select 1 from skip_order")
        assert await actions(bus) == []
    assert not await skips(bus).look(), "it is tried again when its claim has ended"
    await bus.sql("update skip_order set claimed_until = null returning 1")
    assert await skips(bus).look()
    assert not await skips(bus).look()
    assert await actions(bus) == [("skip", blocked.text, "too slow")]
    (letter,) = await bus.letters()
    assert letter["error"] == "set aside by oz: too slow"


async def test_an_order_that_cannot_be_carried_out_is_written_down(bus: Bus) -> None:
    unread = MessagePosition(consumer="nobody", topic=bus.topic.name, partition=0, offset=0)
    await order(bus, unread)
    assert await skips(bus).look()
    ((action, subject, reason),) = await actions(bus)
    assert (action, subject) == ("skip failed", unread.text)
    assert "reads no partition" in reason
    assert not await skips(bus).look()


async def test_an_order_is_given_up_after_many_attempts(bus: Bus) -> None:
    await order(bus, await unhandled(bus))
    await bus.sql("update skip_order set attempts = $1 returning 1", ATTEMPTS - 1)
    async with bus.db.transaction() as handling:
        await handling.fetch("select 1 from consumer_offset for update")
        assert await skips(bus).look()
    ((action, _, reason),) = await actions(bus)
    assert (action, "being handled" in reason) == ("skip failed", True)
    assert not await skips(bus).look()
