"""What was used of late: whose share counts for more by it, whose for less, and within which bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, new_index, offers
from wms.ids import Identity
from wms.matching.shares import GroupShare
from wms.matching.usage import STRONGEST, factor, factors

G, H, W = ("v", "g"), ("v", "h"), ("w", "g")
parts = st.floats(0, 1)


@given(parts, parts)
def test_a_factor_is_bounded_and_never_turns_against_who_used_less(target: float, used: float) -> None:
    assert 1 / STRONGEST <= factor(target, used) <= STRONGEST
    assert factor(target, used / 2) >= factor(target, used)
    assert factor(target / 2, used) <= factor(target, used)


@given(st.floats(0.001, 1))
def test_who_used_what_was_due_has_the_share_as_it_is(part: float) -> None:
    assert factor(part, part) == 1


def test_nobody_has_used_anything() -> None:
    assert factors({G: {"a", "b"}, H: {"c"}}, {}, {}) == {G: {"a": 1, "b": 1}, H: {"c": 1}}


def test_an_entity_alone_has_its_share() -> None:
    assert factors({G: {"a"}}, {}, {Identity("a", "g", "v"): 5.0, Identity("x", "h", "v"): 7.0}) == {
        G: {"a": 1}
    }


def test_owners_of_a_group_by_what_each_used() -> None:
    found = factors({G: {"a", "b"}}, {}, {Identity("a", "g", "v"): 30.0, Identity("b", "g", "v"): 10.0})
    assert found == {G: {"a": pytest.approx(0.5 / 0.75), "b": pytest.approx(0.5 / 0.25)}}


def test_a_sharing_group_is_one_whoever_of_it_used_what() -> None:
    """Usage of members that have nothing waiting is the group's all the same."""
    shares = {G: GroupShare(job_share=1000, job_sharing=True), H: GroupShare(job_share=3000)}
    used = {Identity("gone", "g", "v"): 60.0, Identity("c", "h", "v"): 40.0}
    found = factors({G: {"a", "b"}, H: {"c"}}, shares, used)
    assert found[G]["a"] == found[G]["b"] == pytest.approx(0.25 / 0.6)
    assert found[H] == {"c": pytest.approx(0.75 / 0.4)}


def test_who_used_nothing_counts_most_and_who_used_all_for_what_is_due() -> None:
    found = factors({G: {"a", "b"}}, {}, {Identity("a", "g", "v"): 1.0})
    assert found == {G: {"a": 0.5, "b": STRONGEST}}


def test_vos_do_not_compete() -> None:
    found = factors({G: {"a"}, W: {"a"}}, {}, {Identity("a", "g", "v"): 1e9, Identity("a", "g", "w"): 1.0})
    assert found == {G: {"a": 1}, W: {"a": 1}}


def test_a_share_of_nothing_stays_nothing() -> None:
    found = factors({G: {"a"}}, {G: GroupShare(job_share=0)}, {Identity("a", "g", "v"): 1.0})
    assert found == {G: {"a": 1}}


def test_the_index_weighs_by_it() -> None:
    index = new_index(groups={"g": GroupShare(job_share=900)})
    index.add_queue(1, asks(owner="a"))
    index.add_queue(2, asks(owner="b"))
    index.add(1, 1, [1])
    index.add(2, 1, [2])
    assert index.waiting_owners() == {G: {"a", "b"}}
    index.count_usage({G: {"a": 0.5, "b": 4.0}})
    assert [index.weight(q) for q in (1, 2)] == pytest.approx([225, 1800])
    index.count_usage({})
    assert [index.weight(q) for q in (1, 2)] == pytest.approx([450, 450])
    index.discard(2)
    assert index.waiting_owners() == {G: {"a"}}


def test_the_draw_goes_by_it() -> None:
    index = new_index(law="proportional")
    for tq, owner in ((1, "a"), (2, "b")):
        index.add_queue(tq, asks(owner=owner))
        index.add(tq, 1, range(1_000 * tq, 1_000 * tq + 900))
    index.count_usage({G: {"a": 3.0}})
    rng = np.random.default_rng(3)
    first = [index.select(offers(), 1, rng)[0].tq_id for _ in range(800)]
    assert first.count(1) / len(first) == pytest.approx(0.75, abs=0.05)
