"""Ranges of ids, against sets of the ids."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from wms.ids import beyond, joined

RANGES = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda each: (each[0], sum(each))))


def ids(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {n for low, high in ranges for n in range(low, high + 1)}


@given(RANGES)
def test_joined_ranges_have_the_same_ids_and_do_not_touch(ranges: list[tuple[int, int]]) -> None:
    merged = joined(ranges)
    assert ids(merged) == ids(ranges)
    assert all(one[1] + 1 < other[0] for one, other in pairwise(merged))


def test_a_reversed_range_has_no_ids() -> None:
    assert joined([(5, 3), (1, 2), (9, 8)]) == ((1, 2),)


@given(RANGES, RANGES)
def test_what_is_beyond_is_in_none_of_the_others(
    ranges: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    found = list(beyond(joined(ranges), joined(others)))
    assert ids(found) == ids(ranges) - ids(others)
    assert all(low <= high for low, high in found)
