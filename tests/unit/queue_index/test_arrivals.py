"""The race of queues: whoever wins does so as often as the law of random keys says, in one stream or in several."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.matching.reference import first_of, goodness
from wms.matching.draw_law import Chance, Law
from wms.queue_index.arrivals import NOBODY, Arrivals, Race, Runner

SHARP = 1e-4
RATES = [7.0, 2.0, 2.0, 0.5, 0.01]


def stream(*rates: float, heaviest: float = 0.0) -> Arrivals:
    arrivals = Arrivals()
    arrivals.set_rates(np.array(rates), heaviest)
    return arrivals


def runner(position: int) -> Runner:
    return position, RATES[position]


def chances(law: Law, *rates: float) -> list[float]:
    return first_of(rates) if law == "dirac" else [rate / sum(rates) for rate in rates]


def winners(law: Law, run: Callable[[Race], bool], races: int = 20_000) -> Counter[int]:
    chance = Chance(np.random.default_rng(7))
    counts: Counter[int] = Counter()
    for _ in range(races):
        race = Race(law, chance)
        while not run(race):
            pass
        counts[race.first] += 1
    return counts


def in_either(law: Law, stream: Arrivals, own: Arrivals, runner: Callable[[int], Runner]) -> Counter[int]:
    """Race in a stream, and when some arrivals have decided nothing, in one that knows better who takes part."""
    return winners(law, lambda race: race.run(stream, runner, 20) or race.run(own, runner, 20))


@pytest.mark.parametrize("law", ["dirac", "proportional"])
@pytest.mark.parametrize("heaviest", [0.0, 100.0], ids=["the heaviest known", "or bounded"])
def test_queues_win_as_often_as_the_law_says(law: Law, heaviest: float) -> None:
    counts = in_either(law, stream(*RATES, heaviest=heaviest), stream(*RATES), runner)
    assert goodness([counts[n] for n in range(5)], chances(law, *RATES)) > SHARP


@pytest.mark.parametrize("law", ["dirac", "proportional"])
def test_a_race_may_go_on_in_another_stream(law: Law) -> None:
    """The second has more arrivals, of queues that take no part."""
    first, second = stream(*RATES), stream(*RATES, 30.0)
    at = iter(range(10**9))

    def run(race: Race) -> bool:
        return race.run(
            first if next(at) % 3 else second, lambda n: runner(n) if n < len(RATES) else NOBODY, 1
        )

    counts = winners(law, run)
    assert goodness([counts[n] for n in range(5)], chances(law, *RATES)) > SHARP


@pytest.mark.parametrize("law", ["dirac", "proportional"])
def test_who_takes_no_part_changes_nothing_for_the_others(law: Law) -> None:
    own = stream(0.0, *RATES[1:])
    counts = in_either(law, stream(*RATES), own, lambda n: runner(n) if n else NOBODY)
    assert counts[0] == 0
    assert goodness([counts[n] for n in range(1, 5)], chances(law, *RATES[1:])) > SHARP


def test_a_race_without_rates_is_over_and_won_by_nobody() -> None:
    for arrivals in (stream(), stream(0.0, 0.0)):
        race = Race("dirac", Chance(np.random.default_rng(1)))
        assert race.run(arrivals, runner, 5)
        assert race.first == -1


def test_a_race_that_is_not_over_says_so() -> None:
    race = Race("dirac", Chance(np.random.default_rng(1)))
    assert not race.run(stream(1.0), lambda _: NOBODY, 5)
    assert race.first == -1


def test_arrivals_follow_the_rates_that_were_set_last() -> None:
    arrivals, chance = stream(1.0, 0.0), Chance(np.random.default_rng(1))
    assert {arrivals.use(chance).pop() for _ in range(50)} == {0}
    arrivals.set_rates(np.array([0.0, 1.0]))
    assert {arrivals.use(chance).pop() for _ in range(50)} == {1}


def test_what_is_drawn_depends_on_the_own_generator_alone() -> None:
    arrivals = stream(*RATES)
    one, other = (Chance(np.random.default_rng(3)) for _ in range(2))
    drawn = [arrivals.use(one).pop() for _ in range(2)]
    arrivals.set_rates(np.array(RATES))
    assert [arrivals.use(other).pop() for _ in range(2)] == drawn
