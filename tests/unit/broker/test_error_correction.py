"""A predictor's habit is mended, within bounds, and reservations are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.broker.error_correction import corrected
from wms.broker.knowledge import Correction, Knowledge
from wms.broker.prediction import LONGEST, Prediction

SAID = Prediction.of(1000, 0.3, "benchmark")


def known(correction: Correction) -> Knowledge:
    return Knowledge(corrections={("umea", "execution", "benchmark"): correction})


def test_a_habit_moves_centre_and_interval() -> None:
    found = corrected(SAID, known(Correction(low=1.5, median=2.0, high=2.5, count=99)), "umea", "execution")
    assert found.seconds == pytest.approx(2030)
    assert found.low < 1515 < found.seconds < 2545 < found.high


def test_few_errors_tell_less_of_the_ends() -> None:
    few, many = (Correction(low=1.5, median=2.0, high=2.5, count=count) for count in (20, 300))
    wide, narrow = (corrected(SAID, known(each), "umea", "execution") for each in (few, many))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_reservations_and_other_parts_are_left_alone() -> None:
    by = known(Correction(low=1.5, median=2.0, high=2.5, count=99))
    exact = Prediction.exact(600, "reservation")
    assert corrected(exact, by, "umea", "execution") is exact
    assert corrected(SAID, by, "umea", "waiting") is SAID


@given(st.floats(), st.floats(), st.floats())
def test_nonsense_is_bounded(low: float, median: float, high: float) -> None:
    by = known(Correction(low=low, median=median, high=high, count=20))
    found = corrected(SAID, by, "umea", "execution")
    assert 0 <= found.low <= found.seconds <= found.high <= LONGEST
