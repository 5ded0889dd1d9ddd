"""Conversion of rows to columns, for SQL statements that take one array for each column."""

from collections.abc import Iterable
from typing import Any


def dense(rows: Iterable[tuple[Any, ...]], width: int = 0) -> list[list[Any]]:
    """Return the columns of rows of equal length. Without rows, return `width` empty columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def sparse(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Return the columns of rows of equal length. A column that holds only None becomes an empty list, which `unnest` fills with nulls.

    This saves time, as the driver encodes each element, null or not. At least one column must have a value in each row.
    """
    return [[] if column.count(None) == len(column) else column for column in dense(rows)]
