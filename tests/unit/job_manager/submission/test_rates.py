"""Rates of submissions: an owner's burst, then so many bytes a second, and a refusal that says when to come again."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from services.job_manager.config import SubmissionSettings
from services.job_manager.submission.rates import Rates
from tests.services.world import user
from tests.unit.bus.messages import message
from wms.bus.delivery import Decoded, Delivery
from wms.ids import CommandId
from wms.messages.commands import AddChunks, Command, Control, Selector, Submit

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BURST, RATE = 1_000_000, 10_000
SUBMIT = Submit(command_id=CommandId("c"), jobs=(msgspec.Raw(b"{}"),))
CHUNKS = AddChunks(command_id=CommandId("c"), chunks=())
CONTROL = Control(command_id=CommandId("c"), action="kill", selector=Selector(everything=True))


class Sent:
    """Messages at a time that the test says."""

    def __init__(self) -> None:
        self.at = 0.0
        settings = SubmissionSettings(bytes_per_second=RATE, burst_bytes=BURST)
        self._rates = Rates(settings, lambda: self.at, lambda: NOW + timedelta(seconds=self.at))

    def refusal(self, size: int, said: Command = SUBMIT, owner: str = "ann") -> str | None:
        record = message(owner, size=size).record
        refused = self._rates.admit(Decoded(record, Delivery(user(owner), said)))
        return None if refused is None else f"{refused.code}: {refused.message}; {refused.remedy}"


def test_an_owner_may_send_a_burst_and_then_as_the_time_passes() -> None:
    sent = Sent()
    assert sent.refusal(BURST // 2) is None
    assert sent.refusal(BURST // 2, CHUNKS) is None
    said = sent.refusal(RATE)
    assert said is not None
    assert said.startswith("TOO_FAST: ann has submitted 1,000,000 bytes at once")
    assert "at 12:00:0" in said
    sent.at = 30.0
    assert sent.refusal(RATE) is None


def test_another_owner_has_a_burst_of_his_own() -> None:
    sent = Sent()
    sent.refusal(BURST)
    assert sent.refusal(BURST) is not None
    assert sent.refusal(BURST, owner="bob") is None


def test_what_was_refused_is_not_counted() -> None:
    sent = Sent()
    sent.refusal(BURST)
    for _ in range(100):
        assert sent.refusal(BURST // 2) is not None
    sent.at = BURST / RATE
    assert sent.refusal(BURST // 2) is None


@pytest.mark.parametrize("size", [1, 10 * BURST])
def test_orders_are_no_submissions(size: int) -> None:
    sent = Sent()
    for _ in range(3):
        assert sent.refusal(size, CONTROL) is None
