from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.client.selector import in_words, normalised, ranges, select
from wms.errors import Rejected
from wms.ids import joined
from wms.job.state import State


def test_ids_ranges_and_lists() -> None:
    assert select("7").ids == ((7, 7),)
    assert select(["100-200", "5, 1,9-12", 13]).ids == ((1, 1), (5, 5), (9, 13), (100, 200))
    assert select(7, owner="alice", site="A", name="sim*").name == "sim*"


def test_states_in_any_case_and_sets_of_them() -> None:
    assert select(state="failed,HELD").states == (State.HELD, State.FAILED)
    assert select(state=["ended"]).states == (State.DONE, State.FAILED, State.KILLED)
    assert State.DONE not in select(state="live").states


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("x", "neither a job's id"),
        ("-5", "neither"),
        ("1-2-3", "neither"),
        ("5-1", "ends before it begins"),
        ("1..5", "neither"),
        ("../../etc", "neither"),
        ("99999999999999999999", "neither"),
        ("9999999999999999999", "larger than any"),
        ("1\x1b[31m", r"\\x1b"),
        ("1," * 60_000, "characters"),
        ("sim*", "--name"),
        (",".join(str(n) for n in range(1, 4_000, 2)), "separate ids"),
    ],
)
def test_what_names_no_jobs_is_said(words: str, said: str) -> None:
    with pytest.raises(Rejected, match=said):
        select(words)


def test_a_state_that_is_none_gets_the_nearest() -> None:
    with pytest.raises(Rejected, match="did you mean Waiting"):
        select(state="Wating")
    with pytest.raises(Rejected, match="printable"):
        select(name="a\nb")


def test_what_is_no_selector_is_told() -> None:
    wrong: Any = 999_999
    with pytest.raises(
        TypeError, match=r"expected a Selector, such as select\(7\), or a Submission, not int"
    ):
        normalised(wrong)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 10)).map(lambda each: (each[0], each[0] + each[1])))
)
def test_joined_ranges_hold_the_same_ids_once(found: list[tuple[int, int]]) -> None:
    merged = joined(found)
    ids = [job for low, high in merged for job in range(low, high + 1)]
    assert ids == sorted({job for low, high in found for job in range(low, high + 1)})
    assert all(after[0] > before[1] + 1 for before, after in pairwise(merged))
    assert ranges([in_words(merged)]) == merged
