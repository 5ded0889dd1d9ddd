"""Marks of databases on a real broker: read in their order, and only those that a service has signed."""

import time

import msgspec

from tests.contract.bus.instances import Bus
from tests.unit.messages.examples import MARK
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.bus.database_marks import DatabaseMarks
from wms.messages.database_marks import TOPIC
from wms.messages.wire import encode


def marks(bus: Bus, secret: bytes = b"s") -> DatabaseMarks:
    return DatabaseMarks(bus.kafka, ServiceSignatures(OrderKeys([secret * 32]), time.time))


async def test_marks_are_read_in_order_from_where_the_last_reading_ended(bus: Bus) -> None:
    mine = marks(bus)
    first = await mine.write(MARK)
    second = msgspec.structs.replace(MARK, age=MARK.age + 1)
    assert await mine.write(second) == first + 1
    logged = await mine.read(first)
    assert (list(logged.marks), logged.until) == ([MARK, second], first + 2)
    again = await mine.read(logged.until)
    assert (list(again.marks), again.until) == ([], first + 2)


async def test_a_mark_that_no_service_has_signed_is_none(bus: Bus) -> None:
    first = await marks(bus, b"t").write(MARK)
    await bus.kafka.append(TOPIC, 0, encode(MARK), b"k")
    await bus.kafka.append(TOPIC, 0, b"junk", b"k")
    logged = await marks(bus).read(first)
    assert (list(logged.marks), logged.until) == ([], first + 3)
