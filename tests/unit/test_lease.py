"""Leases: who holds a job, and that an agent stops before the server may give the job away."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.ids import Epoch, JobId, PilotId
from wms.lease import DRIFT, STEP_SECONDS, ClockStepDetector, Lease, holds, renewal_seconds, stop_at

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = PilotId("p-1")
LEASE = Lease(
    job_id=JobId(1), epoch=Epoch(3), pilot_id=ONE, phase="accepted", expires_at=NOW + timedelta(seconds=1)
)


@pytest.mark.parametrize(
    ("lease", "pilot", "epoch", "after_seconds", "held"),
    [
        (LEASE, ONE, 3, 0.0, True),
        (LEASE, ONE, 3, 0.999, True),
        (LEASE, ONE, 3, 1.0, False),
        (LEASE, ONE, 2, 0.0, False),
        (LEASE, ONE, 4, 0.0, False),
        (LEASE, PilotId("p-2"), 3, 0.0, False),
        (None, ONE, 3, 0.0, False),
    ],
)
def test_a_job_is_held_by_one_pilot_under_one_epoch_until_the_end(
    lease: Lease | None, pilot: PilotId, epoch: int, after_seconds: float, *, held: bool
) -> None:
    assert holds(lease, pilot, Epoch(epoch), NOW + timedelta(seconds=after_seconds)) == held


@given(
    lease=st.floats(10, 86_400),
    grace=st.floats(0, 5),
    delay=st.floats(0, 60),
    rate=st.floats(1 - DRIFT, 1 + DRIFT),
)
def test_an_agent_has_stopped_before_the_server_gives_the_job_away(
    lease: float, grace: float, delay: float, rate: float
) -> None:
    """Whatever a message takes, and for node clocks that run up to `DRIFT` too slow or too fast."""
    stopped_by_its_clock = stop_at(0.0, lease, grace) + grace
    stopped = stopped_by_its_clock / rate
    granted_after = delay
    assert stopped <= granted_after + lease + 1e-6


def test_two_renewals_may_get_lost() -> None:
    lease = 120.0
    assert 2 * renewal_seconds(lease) < stop_at(0.0, lease, 10.0)


def seen(steps: ClockStepDetector, database: float, monotonic: float) -> float:
    return steps.since(NOW + timedelta(seconds=database), monotonic)


def test_a_clock_that_was_set_is_told_from_time_that_passed() -> None:
    steps = ClockStepDetector()
    assert seen(steps, 0, 100) == 0.0, "nothing to compare with"
    assert seen(steps, 60, 160) == 0.0
    assert seen(steps, 3_670, 170) == pytest.approx(3_600)
    assert seen(steps, 3_680, 180) == 0.0, "it is told once"
    assert seen(steps, 80, 180) == pytest.approx(-3_600)


def test_clocks_that_disagree_by_little_were_not_set() -> None:
    steps = ClockStepDetector()
    seen(steps, 0, 0)
    assert seen(steps, 10 + STEP_SECONDS, 10) == 0.0
    assert seen(steps, 20 + 2 * STEP_SECONDS + 0.1, 20) != 0.0
