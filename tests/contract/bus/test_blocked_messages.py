"""An operator names and skips the message that blocks a partition."""

import time
from functools import partial

import msgspec
import pytest

from tests.contract.bus.instances import Bus, Note
from tests.waiting import eventually
from wms.bus.blocked_messages import MessagePosition, SkipOrder, blocking, set_aside
from wms.errors import Rejected, Unavailable
from wms.messages.wire import encode


async def test_an_operator_names_and_skips_the_message_that_blocks(bus: Bus) -> None:
    """A handler that never ends stands for whatever keeps a consumer at one message."""
    order = SkipOrder(operator="oz", reason="too slow")
    verify = partial(bus.keys.verifier.verify, now=time.time())
    async with bus.instance(batch=1) as one:
        await bus.send([1])
        await bus.took_effect(1)
        await bus.caught_up()
        one.hold.clear()
        await bus.send_raw([encode(Note(n=n)) for n in (2, 3)])
        await one.holding.wait()
        (found,) = await eventually(partial(blocking, bus.db, bus.kafka, 0.2))
        assert msgspec.json.decode(found.message.payload)["n"] == 2
        wrong = msgspec.structs.replace(found.position, offset=found.position.offset + 1)
        with pytest.raises(Rejected, match="the next message"):
            await set_aside(bus.db, bus.kafka, wrong, order, verify)
        with pytest.raises(Rejected, match="reads no partition"):
            await set_aside(
                bus.db,
                bus.kafka,
                MessagePosition(consumer="x", topic="y", partition=0, offset=0),
                order,
                verify,
            )
        with pytest.raises(Unavailable, match="being handled"):
            await set_aside(bus.db, bus.kafka, found.position, order, verify)
        forced = msgspec.structs.replace(order, force=True)
        await set_aside(bus.db, bus.kafka, found.position, forced, verify)
        one.hold.set()
        assert await bus.took_effect(2) == [1, 3]
        await bus.caught_up()
        assert await blocking(bus.db, bus.kafka, 0.2) == []

    (letter,) = await bus.letters()
    assert letter["error"] == "set aside by oz: too slow"
    assert msgspec.json.decode(letter["principal"])["owner"] == "ann"
    (ordered,) = await bus.sql("select operator, action, subject, reason from operator_order")
    assert (ordered["operator"], ordered["action"], ordered["reason"]) == ("oz", "skip", "too slow")
    assert f"{found.position.topic}/{found.position.partition} {found.position.offset}" in ordered["subject"]
