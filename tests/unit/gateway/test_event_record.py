"""Records of the topic of events."""

from services.gateway.event_record import parsed
from wms.bus.kafka import Message
from wms.messages.events import ElementState

RECORD = b'{"type":"element-state","site":"cern","ce":"","at":"2026-01-01T00:00:00Z","event":"ban","state":"banned"}'


def test_a_record_has_its_fact_and_its_place() -> None:
    record = parsed(Message(3, 7, None, RECORD, ""))
    assert (record.partition, record.offset) == (3, 7)
    assert isinstance(record.fact, ElementState)


def test_one_that_cannot_be_read_keeps_its_place() -> None:
    record = parsed(Message(3, 7, None, b"no json", ""))
    assert (record.offset, record.fact) == (7, None)
