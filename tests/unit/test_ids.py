"""Ranges of ids, against sets of the ids."""

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.ids import SLUG_LIMIT, beyond, joined, slug

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


@pytest.mark.parametrize("name", ["alice", "a", "lcg-cern-ch", "site1"])
def test_plain_names_stay(name: str) -> None:
    assert slug(name) == name


def test_the_slug_of_one_name_is_not_another_name_s() -> None:
    first = slug("LCG.CERN.ch")
    assert first.startswith("lcg-cern-ch-")
    assert slug(first) != first
    assert len({slug(name) for name in ("CERN", "cern", "cern.", ".cern", "cern-", first, "ce rn")}) == 7


@settings(deadline=None)
@given(st.text(), st.text())
def test_slugs_fit_a_topic_and_never_collide(one: str, other: str) -> None:
    for name in (one, other):
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", slug(name))
        assert len(slug(name)) <= SLUG_LIMIT
    assert (slug(one) == slug(other)) == (one == other)


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z.]{1,3}", fullmatch=True), st.from_regex(r"[A-Za-z.]{1,3}", fullmatch=True))
def test_short_slugs_never_collide(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)
