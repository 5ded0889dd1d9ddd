"""Steps of reserved CPUs against a count, second by second."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.agreement.offers import at
from wms.agreement.cpu_steps import CpuSteps

MOST = 8
spans = st.tuples(st.integers(0, 30), st.integers(1, 15), st.integers(1, MOST))


def steps_of(held: list[tuple[int, int, int]]) -> CpuSteps:
    steps = CpuSteps()
    for begin, seconds, cpus in held:
        steps.change(at(begin), at(begin + seconds), cpus)
    return steps


def used(held: list[tuple[int, int, int]], second: int) -> int:
    return sum(cpus for begin, seconds, cpus in held if begin <= second < begin + seconds)


@given(st.lists(spans, max_size=8), spans, st.integers(0, 40))
def test_the_earliest_start_is_the_first_that_a_count_allows(
    held: list[tuple[int, int, int]], wanted: tuple[int, int, int], span: int
) -> None:
    first, seconds, cpus = wanted
    good = [
        start
        for start in range(first, first + span + 1)
        if all(used(held, second) + cpus <= MOST for second in range(start, start + seconds))
    ]
    found = steps_of(held).earliest(cpus, timedelta(seconds=seconds), at(first), at(first + span), MOST)
    assert found == (at(good[0]) if good else None)


@given(st.lists(spans, max_size=8))
def test_what_is_taken_away_again_leaves_no_step(held: list[tuple[int, int, int]]) -> None:
    steps = steps_of(held)
    assert steps.most() == max((used(held, second) for second in range(60)), default=0)
    for begin, seconds, cpus in held:
        steps.change(at(begin), at(begin + seconds), -cpus)
    assert (steps.most(), list(steps.times)) == (0, [])


def test_more_than_the_most_never_starts() -> None:
    steps = CpuSteps()
    assert steps.earliest(MOST + 1, timedelta(seconds=1), at(0), at(10), MOST) is None
    assert steps.earliest(1, timedelta(seconds=1), at(10), at(0), MOST) is None
