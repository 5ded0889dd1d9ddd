"""What a line of usage tells by itself."""

import msgspec

from tests.unit.messages.usage_examples import FULL
from wms.messages import replies


def test_efficiency_and_waste_are_of_the_slots() -> None:
    report = FULL["usage-report"]
    assert isinstance(report, replies.UsageReport)
    (line,) = report.lines
    assert line.efficiency == 1_800.5 / 7_200
    assert line.wasted_seconds == 960.5
    assert msgspec.structs.replace(line, slot_seconds=0.0).efficiency is None
