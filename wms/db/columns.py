"""Rows as columns, as statements over arrays take them."""

from collections.abc import Iterable
from typing import Any


def dense(rows: Iterable[tuple[Any, ...]], width: int = 0) -> list[list[Any]]:
    """Return the columns of the rows; of none, `width` empty ones."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def sparse(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Return the columns of the rows; one in which nothing is said is empty, which `unnest` fills up with nulls.

    What a driver sends costs by the element, said or not. Some column must say something of each row.
    """
    return [[] if column.count(None) == len(column) else column for column in dense(rows)]
