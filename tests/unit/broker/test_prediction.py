"""Predictions are finite, their intervals contain the centre, and independent ones are combined by their certainty."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.broker.prediction import LONGEST, Estimate, Prediction, fused, interval, total

ANY = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, nan, inf, -inf, 1e308, -1e308])


@given(ANY, ANY)
def test_nonsense_is_bounded(seconds: float, spread: float) -> None:
    made = Prediction.of(seconds, spread, "none")
    assert 0 <= made.low <= made.seconds <= made.high <= LONGEST


@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=5))
def test_what_is_fused_lies_between_what_was_said(said: list[tuple[float, float]]) -> None:
    found = fused([Estimate(seconds, spread, "history") for seconds, spread in said])
    centres = [Prediction.of(seconds, 0, "none").seconds for seconds, _ in said]
    assert min(centres) * (1 - 1e-9) - 1e-6 <= found.seconds <= max(centres) * (1 + 1e-9) + 1e-6


def test_the_surer_weighs_more() -> None:
    found = fused([Estimate(1000, 0.1, "benchmark"), Estimate(3000, 1.0, "history")])
    assert 1000 < found.seconds < 1050
    assert found.source == "benchmark"
    assert found.spread < 0.1


def test_nothing_is_not_fused() -> None:
    with pytest.raises(ValueError, match="nothing to fuse"):
        fused([])


def test_an_interval_is_wider_for_a_wider_spread() -> None:
    assert interval(1000, 0) == pytest.approx((1000, 1000))
    narrow, wide = interval(1000, 0.1), interval(1000, 0.5)
    assert wide[0] < narrow[0] < 1000 < narrow[1] < wide[1]


@given(st.lists(st.tuples(ANY, ANY), max_size=4))
def test_a_sum_is_bounded_too(said: list[tuple[float, float]]) -> None:
    whole = total([Prediction.of(seconds, spread, "none") for seconds, spread in said], "none")
    assert 0 <= whole.low <= whole.seconds <= whole.high <= LONGEST


def test_errors_of_a_sum_partly_cancel() -> None:
    parts = [Prediction(seconds=100, low=70, high=140, source="user", model_seconds=100)] * 2
    whole = total(parts, "none")
    assert whole.seconds == 200
    assert (whole.low, whole.high) == pytest.approx((200 - 30 * 2**0.5, 200 + 40 * 2**0.5))
