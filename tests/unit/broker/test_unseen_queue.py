"""An unseen queue: the last waits count, less and less with time, and a job that still waits tells of a longer wait."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.examples import NOW
from wms.broker.knowledge import MeasuredWait
from wms.broker.prediction import Estimate
from wms.broker.unseen_queue import RELAXATION, USUAL_WAIT, longer_than, predict_unseen


def waited(*seconds: float, ago: float = 0.0) -> list[MeasuredWait]:
    return [MeasuredWait(seconds=each, at=NOW - timedelta(seconds=ago)) for each in seconds]


def test_without_a_measurement_the_usual_wait_is_assumed() -> None:
    found = predict_unseen([], [], NOW)
    assert found.source == "none"
    assert found.seconds == pytest.approx(USUAL_WAIT)


def test_the_last_waits_count_and_one_outlier_does_not() -> None:
    found = predict_unseen(waited(500, 1e7, 500, *[9e4] * 20), [], NOW)
    assert found.source == "history"
    assert found.seconds == pytest.approx(500)


def test_a_full_site_is_taken_for_a_usual_one_some_time_later() -> None:
    soon, late, very_late = (
        predict_unseen(waited(90_000, ago=each * RELAXATION), [], NOW) for each in (0, 1, 9)
    )
    assert soon.seconds > late.seconds > very_late.seconds
    assert very_late.seconds == pytest.approx(USUAL_WAIT, rel=0.01)
    assert soon.spread < late.spread < very_late.spread


def test_who_still_waits_after_longer_than_was_predicted_tells_at_once() -> None:
    first = predict_unseen([], [0.0], NOW)
    later = predict_unseen([], [10_000.0, 3.0], NOW)
    assert first.seconds == pytest.approx(USUAL_WAIT, rel=0.05)
    assert later.seconds > 15_000
    assert later.spread < first.spread


def test_a_short_time_in_the_queue_tells_nothing() -> None:
    told = Estimate(5_000.0, 0.5, "history")
    found = longer_than(told, 60.0)
    assert found.seconds == pytest.approx(5_000.0)
    assert found.spread == pytest.approx(0.5)


@given(st.floats(0, 1e8), st.floats(0.05, 3), st.floats(0, 1e8))
def test_a_longer_wait_is_longer(median: float, spread: float, longest: float) -> None:
    found = longer_than(Estimate(median, spread, "history"), longest)
    assert found.seconds >= max(longest, median * (1 - 1e-9) - 1e-6)
    assert 0 < found.spread <= spread
