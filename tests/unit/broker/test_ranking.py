"""The ranking of all candidates."""

from wms.broker.ranking import Ranking


def test_nothing_ranked_has_no_best() -> None:
    assert Ranking(ranked=(), rejected=()).best is None
