"""For how long jobs are counted for a user who asks again and again."""

import pytest

from services.job_manager.queries.counting_time import SHARE, CountingTime


def test_each_user_has_the_most_at_first_and_less_after_it_was_spent() -> None:
    time = CountingTime(1.0, lambda: 0.0)
    time.spend("ann", 0.75)
    assert time.left("ann") == pytest.approx(0.25)
    assert time.left("bob") == 1.0
    time.spend("ann", 0.75)
    assert time.left("ann") == 0.0


def test_what_was_spent_comes_back_by_and_by_but_never_more() -> None:
    now = 100.0
    time = CountingTime(1.0, lambda: now)
    time.spend("ann", 1.0)
    assert time.left("ann") == 0.0
    now += 1.0
    assert time.left("ann") == pytest.approx(SHARE)
    now += 1000.0
    assert time.left("ann") == 1.0


def test_a_user_who_never_pauses_has_a_share_of_the_time() -> None:
    now, spent = 0.0, 0.0
    time = CountingTime(0.25, lambda: now)
    while now < 100.0:
        seconds = time.left("ann")
        now += seconds + 0.02  # another request takes a while
        time.spend("ann", seconds)
        spent += seconds
    assert spent / now == pytest.approx(SHARE, abs=0.02)
