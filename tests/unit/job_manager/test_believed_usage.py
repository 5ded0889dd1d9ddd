"""What a pilot says that an attempt used is believed as far as it had the time for it."""

from typing import Any

import pytest

from services.job_manager.believed_usage import CLOCK_SECONDS, believed
from wms.ids import Epoch, JobId
from wms.job.reasons import Code
from wms.messages.reports import Result, Usage
from wms.site import MAX_PROCESSORS

HELD = 100.0
MOST = 102.0 + CLOCK_SECONDS


def said(slot: float = 0.0, **usage: Any) -> Result:
    return Result(
        job_id=JobId(1),
        epoch=Epoch(1),
        outcome="done",
        code=Code.DONE,
        slot_seconds=slot,
        usage=Usage(**usage),
    )


@pytest.mark.parametrize(
    "result",
    [
        said(),
        said(100.0, wall_seconds=99.0, cpu_user_seconds=1.0, max_rss_bytes=2**40),
        said(100.0, wall_seconds=MOST, cpu_user_seconds=6_400.0, cpu_system_seconds=300.0),
    ],
)
def test_what_can_be_true_stays(result: Result) -> None:
    assert believed(result, HELD) == result


def test_no_time_is_longer_than_the_attempt() -> None:
    lie = said(1e11, wall_seconds=1e11, cpu_user_seconds=1e11, cpu_system_seconds=1e11, disk_bytes=7)
    found = believed(lie, HELD)
    usage = found.usage
    assert [found.slot_seconds, usage.wall_seconds] == pytest.approx([MOST] * 2)
    cpu = [usage.cpu_user_seconds, usage.cpu_system_seconds]
    assert cpu == pytest.approx([MOST * MAX_PROCESSORS] * 2)
    assert usage.disk_bytes == 7


def test_a_clock_that_was_set_back_makes_no_time_negative() -> None:
    assert believed(said(9.0, wall_seconds=9.0), -HELD).usage.wall_seconds == CLOCK_SECONDS
