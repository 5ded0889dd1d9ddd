"""Errors of a predictor at a site count from some on; before, those at all sites do."""

from wms.broker.knowledge import LEAST_SCORED, Correction, Knowledge


def _correction(median: float, count: int) -> Correction:
    return Correction(low=median / 2, median=median, high=median * 2, count=count)


def test_a_site_that_is_known_well_has_its_own() -> None:
    own, every = _correction(3.0, LEAST_SCORED), _correction(1.0, 500)
    known = Knowledge(corrections={("umea", "waiting", "history"): own, ("", "waiting", "history"): every})
    assert known.correction("umea", "waiting", "history") == own
    assert known.correction("lund", "waiting", "history") == every
    assert known.correction("umea", "waiting", "queue-model") is None


def test_a_few_scores_tell_nothing() -> None:
    few = _correction(3.0, LEAST_SCORED - 1)
    known = Knowledge(corrections={("umea", "execution", "benchmark"): few})
    assert known.correction("umea", "execution", "benchmark") is None
