"""How many jobs are fetched ahead: none until jobs prove short, and none again once they run on."""

from services.job_agent.prefetch import AHEAD_LIMIT, Prefetch


def test_nothing_is_fetched_ahead_until_a_job_has_ended() -> None:
    assert Prefetch(0.5).ahead(4, []) == 0


def test_one_short_job_is_enough_to_learn() -> None:
    pace = Prefetch(0.5)
    pace.ended(0.01)
    assert pace.ahead(4, []) == 4 * AHEAD_LIMIT


def test_what_is_fetched_ahead_lasts_for_about_the_time_asked_for() -> None:
    pace = Prefetch(0.5)
    pace.ended(0.1)
    assert pace.ahead(4, []) == 20


def test_jobs_that_run_on_make_it_forget_at_once() -> None:
    pace = Prefetch(0.5)
    for _ in range(100):
        pace.ended(0.01)
    assert pace.ahead(4, [3.0, 3.0, 3.0, 0.0]) == 0
    # One of four that is long does not: the others' slots would wait.
    assert pace.ahead(4, [300.0, 0.0, 0.0, 0.0]) == 4 * AHEAD_LIMIT


def test_a_few_long_jobs_are_enough_to_unlearn() -> None:
    pace = Prefetch(0.5)
    for seconds in [0.01] * 100 + [5.0] * 5:
        pace.ended(seconds)
    assert pace.ahead(4, []) == 0
