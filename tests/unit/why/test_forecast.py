"""The forecast held against the draw itself: places, chances of priorities, and intervals that cover what happens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, new_index, offers
from wms.matching.draw_law import Law
from wms.matching.queue_stats import Level, Served
from wms.queue_index.index import QueueIndex
from wms.why.forecast import draws_of_level, forecast, level_chance, older

FADING = 600.0
RUNS = 4_000


def level(priority: float = 1.0, count: int = 100, oldest: int = 1, newest: int | None = None) -> Level:
    return Level(user_priority=priority, count=count, oldest=oldest, newest=newest or oldest + count - 1)


def served(count: float, seconds: float = 6_000.0) -> Served:
    return Served(faded_count=count, watched_seconds=seconds, fading_seconds=FADING)


@given(st.sets(st.integers(1, 60), min_size=1, max_size=20), st.data())
def test_the_place_of_a_job_lies_between_its_bounds(ids: set[int], data: st.DataObject) -> None:
    job = data.draw(st.sampled_from(sorted(ids)))
    spread = Level(user_priority=1.0, count=len(ids), oldest=min(ids), newest=max(ids))
    least, most = older(job, spread)
    assert least <= sum(each < job for each in ids) <= most


def test_the_place_is_exact_where_ids_follow_on() -> None:
    assert older(41, level(count=100)) == (40, 40)


@pytest.mark.parametrize(
    ("older_jobs", "count"), [(0, 1), (0, 5), (3, 12), (0, 40), (9, 200), (25, 60), (59, 60)]
)
def test_draws_until_a_job_is_taken_are_as_the_index_draws(older_jobs: int, count: int) -> None:
    mean, variance = draws_of_level(older_jobs, count)
    found = np.array([draws_until(older_jobs, count, seed) for seed in range(600)])
    error = (variance / len(found)) ** 0.5
    assert abs(found.mean() - mean) < 4.5 * error + 1e-9
    if variance:
        assert 0.75 < found.var() / variance < 1.3
    else:
        assert not found.var()


def draws_until(older_jobs: int, count: int, seed: int) -> int:
    index = new_index()
    index.add_queue(1, asks())
    index.add(1, 1.0, range(count))
    rng = np.random.default_rng(seed)
    return [pick.job_id for pick in index.select(offers(), count, rng)].index(older_jobs) + 1


@pytest.mark.parametrize("law", ["dirac", "proportional"])
@pytest.mark.parametrize("counts", [{1: 1, 2: 1}, {1: 30, 3: 10, 10: 1}, {0: 5, 2: 1}, {1: 1, 2: 1, 3: 1}])
def test_the_chance_of_a_priority_is_as_the_index_draws(law: Law, counts: dict[int, int]) -> None:
    levels = [level(float(priority), count) for priority, count in counts.items()]
    chances = [level_chance(n, levels, law) for n in range(len(levels))]
    assert sum(chances) == pytest.approx(1, abs=0.01)
    found = dict.fromkeys(counts, 0)
    rng = np.random.default_rng(3)
    index = QueueIndex(law=law)
    index.add_queue(1, asks())  # type: ignore[arg-type] # a plain number for an id
    for place, (priority, count) in enumerate(counts.items()):
        index.add(1, float(priority), range(place * 1_000, place * 1_000 + count))  # type: ignore[arg-type]
    for _ in range(RUNS):
        (pick,) = index.select(offers(), 1, rng)
        found[int(pick.user_priority)] += 1
        index.restore([pick])
    for priority, chance in zip(counts, chances, strict=True):
        assert abs(found[priority] / RUNS - chance) < 4.5 * (chance * (1 - chance) / RUNS) ** 0.5 + 0.004


@pytest.mark.parametrize(
    ("per_minute", "older_jobs", "count"), [(60.0, 500, 1_000), (2.0, 0, 300), (6.0, 30, 40)]
)
def test_four_in_five_jobs_start_within_the_interval(per_minute: float, older_jobs: int, count: int) -> None:
    """The rate is not known to the forecast: it has but counted what a Poisson process gave, fading."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(RUNS):
        told = forecast(older_jobs + 1, 1.0, [level(count=count)], served(counted(per_minute, rng)), "dirac")
        assert told is not None
        if told.earliest_seconds is None:
            continue
        draws = drawn_after(older_jobs, count, rng)
        start = rng.gamma(draws) * 60 / per_minute
        latest = told.latest_seconds if told.latest_seconds is not None else np.inf
        covered += told.earliest_seconds <= start <= latest
    assert 0.74 < covered / RUNS < 0.88


def counted(per_minute: float, rng: np.random.Generator) -> float:
    """Return what a count of a Poisson process over 100 minutes is, each event faded by its age."""
    ages = rng.random(rng.poisson(per_minute * 100)) * 6_000
    return float(np.exp(-ages / FADING).sum())


def drawn_after(older_jobs: int, count: int, rng: np.random.Generator) -> int:
    """Return the draw that takes the job: by the rule, not by the moments of it."""
    before, left, draws = older_jobs, count, 0
    while True:
        draws += 1
        picked = int(rng.random() * min(10, left))
        if picked == before:
            return draws
        before -= picked < before
        left -= 1


def test_without_any_match_lately_nothing_is_foretold() -> None:
    told = forecast(5, 1.0, [level()], served(0.0), "dirac")
    assert told is not None
    assert (told.older_least, told.older_most, told.level_chance) == (4, 4, 1.0)
    assert told.matched_per_minute is None
    assert told.earliest_seconds is told.likely_seconds is told.latest_seconds is None


def test_a_job_of_no_known_priority_has_no_place() -> None:
    assert forecast(5, 2.0, [level(), level(2.0, count=0)], served(10.0), "dirac") is None


def test_a_rate_is_a_rate_whatever_the_time_watched() -> None:
    """A queue watched for ten seconds that had ten matches has sixty a minute."""
    young = forecast(1, 1.0, [level()], served(10.0, seconds=10.0), "dirac")
    old = forecast(1, 1.0, [level()], served(600.0), "dirac")
    assert young is not None
    assert old is not None
    assert young.matched_per_minute == pytest.approx(60, rel=0.02)
    assert old.matched_per_minute == pytest.approx(60, rel=0.02)
