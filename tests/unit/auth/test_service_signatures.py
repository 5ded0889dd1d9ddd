"""What services tell each other is believed from services alone, once, and not for long."""

import json

import pytest

from wms.auth.envelope import ENVELOPE_BYTES
from wms.auth.orders import OrderKeys
from wms.auth.service_signatures import NOTICE_SECONDS, ServiceSignatures
from wms.errors import Rejected

TOPIC, LIMIT = "wms.queue.changes", 10_000
NOTICE = b'{"type":"left","job_ids":[1]}'
OLD, NEW = b"o" * 32, b"n" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def notices(*secrets: bytes, clock: Clock | None = None) -> ServiceSignatures:
    return ServiceSignatures(OrderKeys(secrets or (NEW,)), clock or Clock())


def refusal(reader: ServiceSignatures, payload: bytes, topic: str = TOPIC) -> str:
    with pytest.raises(Rejected) as caught:
        reader.verified(topic, payload, LIMIT)
    return caught.value.code


def test_a_signed_notice_is_read_as_it_was_written() -> None:
    signed = notices(NEW, OLD).sign(TOPIC, NOTICE)
    assert bytes(notices().verified(TOPIC, signed, LIMIT)) == NOTICE
    assert json.loads(signed)["notice"] == json.loads(NOTICE)
    assert len(signed) <= len(NOTICE) + ENVELOPE_BYTES


@pytest.mark.parametrize(
    "payload",
    [
        NOTICE,
        b"",
        b"\xff",
        b"[" * 100_000,
        b"x" * (LIMIT + ENVELOPE_BYTES + 1),
        b'{"macs":[],"at":1000000000,"notice":' + NOTICE + b"}",
        b'{"macs":["","\\u00e9"],"at":1000000000,"notice":' + NOTICE + b"}",
        notices(OLD).sign(TOPIC, NOTICE),
        notices().sign("wms.other", NOTICE),
        notices().sign(TOPIC, NOTICE).replace(b"[1]", b"[2]"),
        notices().sign(TOPIC, NOTICE).replace(b'"at":1000000000', b'"at":1000000001'),
        OrderKeys([NEW]).sign(TOPIC, b"\0services", NOTICE).replace(b'"order":', b'"at":1000000000,"notice":'),
        OrderKeys([NEW]).sign(TOPIC, b"p-1", NOTICE).replace(b'"order":', b'"at":1000000000,"notice":'),
    ],
    ids=["unsigned", "nothing", "no text", "deep", "large", "no mac", "strange macs", "another secret", "another topic", "changed",
         "another time", "an order", "a pilot's order"],
)  # fmt: skip
def test_what_no_service_signed_is_refused(payload: bytes) -> None:
    assert refusal(notices(), payload) == "NOTICE_FORGED"


def test_a_notice_is_read_once_and_not_when_it_is_old() -> None:
    clock = Clock()
    reader = notices(clock=clock)
    signed = reader.sign(TOPIC, NOTICE)
    reader.verified(TOPIC, signed, LIMIT)
    for later in (0.0, NOTICE_SECONDS - 1, 2.0, 10 * NOTICE_SECONDS):
        clock.now += later
        assert refusal(reader, signed) == "NOTICE_STALE"
    # Nor one of a clock that is far ahead.
    ahead = Clock()
    ahead.now = clock.now + NOTICE_SECONDS + 1
    assert refusal(reader, notices(clock=ahead).sign(TOPIC, NOTICE)) == "NOTICE_STALE"
    reader.verified(TOPIC, reader.sign(TOPIC, NOTICE), LIMIT)


def test_services_with_an_older_and_a_newer_secret_understand_each_other() -> None:
    before, between, after = notices(OLD), notices(NEW, OLD), notices(NEW)
    pairs = [(before, between), (between, before), (between, after), (after, between)]
    for number, (writer, reader) in enumerate(pairs):
        reader.verified(TOPIC, writer.sign(TOPIC, NOTICE.replace(b"1", b"%d" % number)), LIMIT)
    assert refusal(after, before.sign(TOPIC, NOTICE)) == "NOTICE_FORGED"


def test_a_hint_may_be_old_and_come_again_but_not_be_forged() -> None:
    clock = Clock()
    reader, signed = notices(clock=clock), notices().sign(TOPIC, NOTICE)
    clock.now += 10 * NOTICE_SECONDS
    assert [bytes(reader.authentic(TOPIC, signed, LIMIT)) for _ in range(2)] == [NOTICE] * 2
    for forged, topic in ((signed, "another"), (notices(OLD).sign(TOPIC, NOTICE), TOPIC), (NOTICE, TOPIC)):
        with pytest.raises(Rejected, match="NOTICE_FORGED"):
            reader.authentic(topic, forged, LIMIT)
