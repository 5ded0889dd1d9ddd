"""Predictions are held against the truth by site and predictor, and corrections follow from the latest."""

from typing import Any

import pytest

from wms.broker.calibration import RECENT, ScoredPrediction, calibrate, corrections
from wms.broker.prediction import UNFELT


def scored(truth: float, **more: Any) -> ScoredPrediction:
    given: dict[str, Any] = {
        "site": "umea", "part": "waiting", "source": "history", "seconds": 1000.0, "low": 500.0, "high": 2000.0,
        "model_seconds": 1000.0, "truth": truth,
    }  # fmt: skip
    return ScoredPrediction(**given | more)


def test_coverage_ratio_and_error_are_told_by_site_and_predictor() -> None:
    found = calibrate([scored(600), scored(1030), scored(4000), scored(1000, site="lund")])
    assert [(each.site, each.count) for each in found] == [("lund", 1), ("umea", 3)]
    assert found[1].covered == pytest.approx(2 / 3)
    assert found[1].ratio == pytest.approx((1030 + UNFELT) / (1000 + UNFELT))
    assert found[1].error_seconds == 400


def test_sites_or_predictors_are_taken_together() -> None:
    said = [scored(600), scored(700, site="lund"), scored(800, source="queue-model")]
    by_site, by_predictor = calibrate(said, "site"), calibrate(said, "predictor")
    assert [(each.site, each.source, each.count) for each in by_site] == [("lund", "", 1), ("umea", "", 2)]
    assert [(each.site, each.source, each.count) for each in by_predictor] == [
        ("", "history", 2),
        ("", "queue-model", 1),
    ]


def test_a_truth_that_is_none_scores_nothing() -> None:
    assert calibrate([scored(float("nan")), scored(-1.0)]) == []
    assert corrections([scored(float("nan"))]) == {}


def test_the_latest_decide_a_correction_and_all_sites_have_one_too() -> None:
    old = [scored(9970.0)] * RECENT
    found = corrections([*[scored(2030.0)] * RECENT, *old, scored(1000.0, site="lund")])
    assert found["umea", "waiting", "history"].median == pytest.approx(2)
    assert found["lund", "waiting", "history"].count == 1
    assert found["", "waiting", "history"].count == RECENT
