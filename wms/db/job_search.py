"""Searches job rows for a page of selected jobs. The time for a page is bounded, however many jobs there are.

A search scans an index for which the selector has a condition, and compares each job there with the other conditions. It scans a
bounded number of jobs. So the page may be short or empty; it comes with the id from which the next search continues.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

import msgspec

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import AT_A_PILOT, RARE, State
from wms.messages.commands import Selector

SQL = load(__file__)


class PageRequest(msgspec.Struct, frozen=True):
    """The size and the position of one page of selected jobs, ordered by id."""

    limit: int
    after: int | None = None
    """The last id of the page before. None for the first page."""
    newest: bool = False
    """Whether the newest jobs come first."""
    alone: bool = False
    """Whether only jobs that are in no job array are returned."""


class FoundJobs(msgspec.Struct, frozen=True):
    """The ids of the jobs that a search found, and the last id that it scanned (`until`; None if there are no further jobs)."""

    ids: list[JobId]
    until: int | None = None


class JobIndex(msgspec.Struct, frozen=True):
    """The index that a search scans: that of an owner's jobs, or a smaller one of jobs with one more property."""

    states: tuple[State, ...] = ()
    """The states of the jobs to be found by this index; empty: any state."""
    rare_state: State | None = None
    group: str | None = None
    at_pilots: bool = False
    """Whether to scan the leases instead, which name the jobs that pilots have."""


def indexes(scope: Scope, selector: Selector) -> Iterator[JobIndex]:
    """Yield indexes in which all selected jobs are found, each job in one of them.

    Jobs in rare states have an index over all owners. The index of groups begins with the owner; if neither scope nor selector names
    one, all jobs are scanned instead. Sites have no index: a job gets its site as it is matched, and each match would write to all
    indexes of its row.
    """
    if not selector.states:
        yield _narrowest(scope, selector, ())
        return
    states = frozenset(selector.states)
    for rare in sorted(states & RARE):
        yield JobIndex((rare,), rare_state=rare)
    if states & AT_A_PILOT:
        yield JobIndex(tuple(sorted(states & AT_A_PILOT)), at_pilots=True)
    if frequent := tuple(sorted(states - RARE - AT_A_PILOT)):
        yield _narrowest(scope, selector, frequent)


def _narrowest(scope: Scope, selector: Selector, states: tuple[State, ...]) -> JobIndex:
    has_owner = scope.owner is not None or selector.owner is not None
    return JobIndex(states, group=(selector.job_group or None) if has_owner else None)


async def search(
    tx: Transaction, scope: Scope, selector: Selector, page: PageRequest, looked_at: int
) -> FoundJobs:
    """Return selected jobs that have rows and that the user with this scope may see, and where the search ended.

    In each index, the next `looked_at` jobs are scanned.
    """
    conditions = (
        scope.owner,
        scope.group,
        scope.vo,
        selector.owner,
        selector.site,
        like(selector.name),
        selector.job_group,
        selector.changed_since,
        page.after,
        page.limit,
        page.alone,
        looked_at,
    )
    found = [await _along(tx, index, page, conditions) for index in indexes(scope, selector)]
    return together(found, page)


def together(found: list[FoundJobs], page: PageRequest) -> FoundJobs:
    """Combine the results of several searches into one page. It ends at the first id at which any of the searches ended."""
    ends = [each.until for each in found if each.until is not None]
    until = None if not ends else max(ends) if page.newest else min(ends)
    # A job that moved between two searches may be in both.
    merged = dict.fromkeys(merge(*(each.ids for each in found), reverse=page.newest))
    ids = [each for each in islice(merged, page.limit) if until is None or _by(each, until, page)]
    return FoundJobs(ids, until if len(ids) < page.limit else ids[-1])


def _by(job_id: JobId, until: int, page: PageRequest) -> bool:
    return job_id >= until if page.newest else job_id <= until


async def _along(
    tx: Transaction, index: JobIndex, page: PageRequest, conditions: tuple[Any, ...]
) -> FoundJobs:
    states = list(index.states) or None
    if index.at_pilots:
        query = SQL["newest_at_pilots" if page.newest else "oldest_at_pilots"]
        rows = await tx.fetch(query, *conditions, states)
    else:
        query = SQL["newest" if page.newest else "oldest"]
        rows = await tx.fetch(query, *conditions, states, index.rare_state, index.group)
    ids = [row["job_id"] for row in rows if row["selected"]]
    return FoundJobs(ids, next((row["job_id"] for row in rows if not row["selected"]), None))


def like(pattern: str | None) -> str | None:
    """Return the pattern for SQL's LIKE that matches the same names as a user's pattern with * and ?; None for None."""
    if pattern is None:
        return None
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")
