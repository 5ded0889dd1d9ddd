"""Selectors in the database: which jobs a user means, of those that he may act on."""

from typing import Any

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.messages.commands import Selector

SQL = load(__file__)


class Page(msgspec.Struct, frozen=True):
    """Which part of the selected jobs."""

    limit: int
    after: int | None = None
    newest: bool = False


def is_empty(selector: Selector) -> bool:
    """Return whether the selector names nothing, and so means nothing."""
    return selector == Selector()


async def select(tx: Transaction, scope: Scope, selector: Selector, page: Page) -> list[JobId]:
    """Return the ids of a page of the jobs meant."""
    if is_empty(selector):
        return []
    columns = [*_scope(scope), *_wanted(selector), page.after, page.limit]
    if selector.ids:
        found = await tx.fetch(SQL["of_ranges"], *_ranges(selector), *columns)
    else:
        found = await tx.fetch(SQL["newest_of_all" if page.newest else "of_all"], *columns)
    return list(dict.fromkeys(row["job_id"] for row in found))


async def count(tx: Transaction, scope: Scope, selector: Selector) -> dict[str, int]:
    """Return how many of the jobs meant are in each state."""
    if is_empty(selector):
        return {}
    columns = [*_scope(scope), *_wanted(selector)]
    if selector.ids:
        rows = await tx.fetch(SQL["count_ranges"], *_ranges(selector), *columns)
    else:
        rows = await tx.fetch(SQL["count_all"], *columns)
    return {row["state"]: row["jobs"] for row in rows}


async def lines(tx: Transaction, job_ids: list[JobId]) -> list[asyncpg.Record]:
    """Return the jobs as a list shows them, in the order of the ids given."""
    rows = {row["job_id"]: row for row in await tx.fetch(SQL["lines"], job_ids)}
    return [rows[job_id] for job_id in job_ids if job_id in rows]


def _scope(scope: Scope) -> tuple[str | None, str | None, str | None]:
    return scope.owner, scope.group, scope.vo


def _wanted(selector: Selector) -> tuple[Any, ...]:
    states = list(selector.states) or None
    return selector.owner, states, selector.site, _like(selector.name)


def _like(pattern: str | None) -> str | None:
    if pattern is None:
        return None
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def _ranges(selector: Selector) -> tuple[list[int], list[int]]:
    return [low for low, _ in selector.ids], [high for _, high in selector.ids]
