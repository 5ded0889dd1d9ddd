"""Corrections of a simulated broker follow from its latest predictions."""

from typing import Any

import pytest

from bench.corrections import RECENT, ScoredPrediction, corrections


def scored(truth: float, **more: Any) -> ScoredPrediction:
    given: dict[str, Any] = {
        "site": "umea", "part": "waiting", "source": "history", "seconds": 1000.0, "low": 500.0, "high": 2000.0,
        "model_seconds": 1000.0, "truth": truth,
    }  # fmt: skip
    return ScoredPrediction(**given | more)


def test_a_truth_that_is_none_scores_nothing() -> None:
    assert corrections([scored(float("nan")), scored(-1.0)]) == {}


def test_the_latest_decide_a_correction_and_all_sites_have_one_too() -> None:
    old = [scored(9970.0)] * RECENT
    found = corrections([*[scored(2030.0)] * RECENT, *old, scored(1000.0, site="lund")])
    assert found["umea", "waiting", "history"].median == pytest.approx(2)
    assert found["lund", "waiting", "history"].count == 1
    assert found["", "waiting", "history"].count == RECENT
