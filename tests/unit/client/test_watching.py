"""When a client that waits for jobs counts them again."""

from itertools import pairwise

import pytest

from wms.client.watching import COUNT_SECONDS, LEAST_PAUSE, CountPace

FIRST, LONGEST = COUNT_SECONDS


def polls(jobs: int, rate: float, until: float = 600.0) -> list[float]:
    """Return the times of the polls of jobs that end one after another at a rate in jobs a second. The last poll finds them all ended."""
    pace, now, times = CountPace(), 0.0, [0.0]
    while (ended := min(jobs, int(now * rate))) < jobs and now < until:
        now += pace.pause(now, ended, jobs - ended)
        times.append(now)
    return times


@pytest.mark.parametrize("jobs", [1_000, 1_100, 1_300, 2_000, 3_700])
def test_the_end_of_many_short_jobs_is_noticed_at_once(jobs: int) -> None:
    rate = 400.0
    *before, last = polls(jobs, rate)
    assert last - jobs / rate <= 2 * LEAST_PAUSE
    assert len(before) <= 16


def test_long_jobs_are_polled_at_the_longest_pause() -> None:
    times = polls(10, 0.01)
    assert max(later - earlier for earlier, later in pairwise(times)) == LONGEST


def test_the_first_pauses_grow_while_no_job_ends() -> None:
    pace = CountPace()
    pauses = [pace.pause(now, 0, 5) for now in range(8)]
    assert pauses[:3] == pytest.approx([FIRST, 1.5 * FIRST, 2.25 * FIRST])
    assert pauses[-1] == LONGEST


def test_a_pause_grows_again_when_the_jobs_stop_ending() -> None:
    pace = CountPace()
    pace.pause(0.0, 0, 100)
    soon = pace.pause(1.0, 90, 10)
    later = [pace.pause(1.0 + n, 90, 10) for n in range(1, 20)]
    assert soon < later[0] < later[1]
    assert later[-1] == LONGEST
