"""Programs start within the window that the pilot was sent with: not before it, and not after it, however long their files take."""

from datetime import timedelta

import pytest

from services.job_agent.payload.run import Payload
from services.job_agent.payload.start_window import PayloadStartWindow
from services.job_agent.payload.workplace import Workplace
from wms.ids import Epoch, JobId
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.runtime import clock


def payload(workplace: Workplace, **window: timedelta) -> Payload:
    workplace.starts = PayloadStartWindow(**{name: clock.now() + ahead for name, ahead in window.items()})
    return Payload(
        workplace, JobId(1), Epoch(1), JobDescription(executable="/bin/date", arguments=("+%s.%N",))
    )


async def test_a_program_waits_for_its_earliest_start(workplace: Workplace) -> None:
    held = payload(workplace, earliest=timedelta(seconds=0.5), latest=timedelta(minutes=1))
    outcome = await held.run()
    assert outcome.reason.code is Code.DONE
    assert workplace.starts.earliest is not None
    assert float(outcome.stdout_tail) >= workplace.starts.earliest.timestamp()


async def test_a_program_does_not_start_after_its_latest_start(workplace: Workplace) -> None:
    outcome = await payload(workplace, latest=timedelta(seconds=-27)).run()
    assert (outcome.reason.code, outcome.began) == (Code.TOO_LATE_TO_START, False)
    assert "27 s after its latest start" in outcome.reason.text


async def test_a_job_that_waits_can_be_killed(workplace: Workplace) -> None:
    held = payload(workplace, earliest=timedelta(hours=1))
    held.kill(Reason(Code.KILLED_BY_USER))
    assert (await held.run()).reason.code is Code.KILLED_BY_USER


@pytest.mark.parametrize("ahead", [None, timedelta(seconds=-1)])
async def test_without_a_window_it_starts_at_once(ahead: timedelta | None) -> None:
    window = PayloadStartWindow(None if ahead is None else clock.now() + ahead)
    assert await window.wait(clock.now, lambda: None) is None
