"""Rows as columns, for statements over arrays."""

from collections.abc import Iterable
from typing import Any


def dense(rows: Iterable[tuple[Any, ...]], width: int = 0) -> list[list[Any]]:
    """Return the columns of the rows; without rows, `width` empty ones."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def sparse(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Return the columns of the rows. A column of only None is empty, and `unnest` fills it with nulls.

    The driver's cost is for each element, null or not. Some column must have a value in each row.
    """
    return [[] if column.count(None) == len(column) else column for column in dense(rows)]
