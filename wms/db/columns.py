"""Conversion of rows to columns, for statements with array parameters."""

from collections.abc import Iterable
from typing import Any


def dense(rows: Iterable[tuple[Any, ...]], width: int = 0) -> list[list[Any]]:
    """Return the columns of the rows; without rows, `width` empty columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def sparse(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Return the columns of the rows. A column of None alone becomes empty, and `unnest` fills it with nulls.

    This saves time, as the driver encodes each element, null or not. At least one column must have a value in each row.
    """
    return [[] if column.count(None) == len(column) else column for column in dense(rows)]
