"""A tenth of outliers on either side moves neither what is typical nor the mean without its ends."""

import pytest

from wms.broker.robust_statistics import mean_without_ends, quantiles, typical


def test_what_is_typical_is_the_median() -> None:
    found = typical([100.0] * 40 + [1e9] * 4, 0.5)
    assert found is not None
    assert found.median == pytest.approx(100)
    assert found.spread < 0.2


def test_few_measurements_scatter_as_is_assumed() -> None:
    one, many = typical([100.0], 0.8), typical([100.0] * 100, 0.8)
    assert one is not None
    assert many is not None
    assert one.spread > many.spread
    assert one.of_median > many.of_median


def test_nothing_and_nonsense_tell_nothing() -> None:
    assert typical([], 1.0) is None
    assert typical([float("nan"), float("inf"), -3.0, 0.0], 1.0) is None
    assert mean_without_ends([float("nan"), 0.0]) is None
    assert quantiles([float("nan")], [0.5]) == []


def test_no_time_is_a_measurement_with_an_offset() -> None:
    found = typical([0.0, 0.0, 0.0], 1.0, 30.0)
    assert found is not None
    assert found.median == pytest.approx(0)


def test_one_run_of_a_year_does_not_decide_a_mean() -> None:
    found = mean_without_ends([100.0] * 50 + [3e7])
    assert found == pytest.approx(100)


def test_quantiles_are_interpolated() -> None:
    assert quantiles([3.0, 1.0, 2.0], [0, 0.25, 1]) == [1.0, 1.5, 3.0]
