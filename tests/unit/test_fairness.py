"""Turns: who used least is next, and what was not used before gives no claim."""

from hypothesis import given
from hypothesis import strategies as st

from wms.fairness import levelled

NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.integers(0, 100)), st.lists(NAMES, unique=True))
def test_newcomers_begin_where_the_least_of_the_others_is(used: dict[str, int], waiting: list[str]) -> None:
    found = levelled(used, waiting, 0)
    assert set(found) == set(waiting), "who waits no more has no turn"
    old = [used[name] for name in waiting if name in used]
    for name in waiting:
        assert found[name] == used.get(name, min(old, default=0))


def test_where_all_are_new_they_begin_at_nothing() -> None:
    assert levelled({"gone": 9}, ["a", "b"], 2.5) == {"a": 2.5, "b": 2.5}


def test_turns_even_out_over_time() -> None:
    used: dict[str, int] = {}
    turns = []
    for round_ in range(60):
        names = ["a", "b"] if round_ < 30 else ["a", "b", "late"]
        used = levelled(used, names, 0)
        name = min(used, key=lambda each: (used[each], each))
        used[name] += 1
        turns.append(name)
    assert turns[:30].count("a") == turns[:30].count("b") == 15
    assert {turns[30:].count(name) for name in ("a", "b", "late")} == {10}, (
        "the late one makes up for nothing"
    )
