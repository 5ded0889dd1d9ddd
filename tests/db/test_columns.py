"""Rows as columns: all of them, or without those in which nothing is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.db.columns import dense, sparse
from wms.db.database import Transaction

ROWS = st.lists(st.tuples(st.integers(), st.text(max_size=3), st.none() | st.booleans()), min_size=1)


@given(ROWS)
def test_columns_hold_what_the_rows_say(rows: list[tuple[int, str, bool | None]]) -> None:
    assert list(zip(*dense(rows), strict=True)) == rows


def test_of_no_rows_there_are_as_many_empty_columns_as_asked_for() -> None:
    assert dense([], 3) == [[], [], []]
    assert dense([(1, 2)], 2) == [[1], [2]]


def test_rows_of_different_widths_are_a_fault() -> None:
    with pytest.raises(ValueError, match="zip"):
        dense([(1, 2), (3,)])


def test_a_column_in_which_nothing_is_said_is_empty() -> None:
    assert sparse([(1, None, None), (2, "x", None)]) == [[1, 2], [None, "x"], []]


async def test_the_server_fills_an_empty_column_up_with_nulls(tx: Transaction) -> None:
    rows = [(1, None, "a"), (2, None, None)]
    found = await tx.fetch("select * from unnest($1::integer[], $2::text[], $3::text[])", *sparse(rows))
    assert [tuple(row) for row in found] == rows
