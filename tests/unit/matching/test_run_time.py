"""How long jobs of a queue take: learnt from the first, told when it changes, large where a queue has jobs of several kinds."""

import pytest

from wms.matching.run_time import RunTime, after


def test_nothing_is_known_until_a_job_has_ended() -> None:
    assert after(None, []) is None
    assert after(None, [2.0]) == RunTime(2.0, 1.0)


def test_equal_jobs_make_it_certain() -> None:
    known = after(None, [2.0] * 20)
    assert known is not None
    assert known.likely == pytest.approx(2.0, rel=0.01)


def test_jobs_of_two_kinds_count_as_long() -> None:
    known = after(None, [0.01, 2.0] * 20)
    assert known is not None
    assert known.likely > 2.0


def test_a_few_long_jobs_are_enough_to_unlearn() -> None:
    short = after(None, [0.01] * 100)
    known = after(short, [5.0])
    assert known is not None
    assert known.likely > 1.0
    assert known.is_news_to(short)


def test_a_small_change_is_no_news() -> None:
    told = RunTime(1.0, 0.1)
    assert told.is_news_to(None)
    assert not RunTime(1.1, 0.1).is_news_to(told)
    assert RunTime(1.3, 0.1).is_news_to(told)
