"""Searches job rows for a page of selected jobs. The time for a page is bounded, however many jobs there are.

A search scans an index for which the selector has a condition, and compares each job there with the other conditions. It ends after a
while. So the page may be short or empty; it comes with the id from which the next search continues.
"""

import time
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Final, Literal, TypeAlias

import msgspec

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import AT_A_PILOT, RARE, State
from wms.messages.commands import Selector

SQL = load(__file__)

STEP: Final = 5_000
"""How many job rows one statement scans along an index at most. It takes 3 ms where they lie side by side, 20 ms where each is in its own page."""
FIRST_STEP: Final = 1_000
"""How many job rows a statement scans if it is not known yet how long that takes, or if the time is over."""
LOWEST: Final = 0
HIGHEST: Final = 2**63 - 1
"""Ids below and above those of all jobs."""


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


IndexName: TypeAlias = Literal["all", "owner", "group", "rare state", "rare state of owner", "leases"]
"""The indexes that a search of jobs can scan. Each is ordered by the job's id within the property that its name tells.

A rare state is one that few jobs have, such as Held: indexes of these states alone are small. `leases` has the jobs at pilots.
"""


class JobIndex(msgspec.Struct, frozen=True):
    """An index that a search scans, and the states of the jobs that are to be found by it (empty: any state)."""

    name: IndexName
    states: tuple[State, ...] = ()
    rare_state: State | None = None
    """The state whose jobs are scanned, if the index is one of rare states."""


def indexes(scope: Scope, selector: Selector) -> Iterator[JobIndex]:
    """Yield indexes in which all selected jobs are found, each job in one of them.

    Jobs in rare states have an index over all owners too. The index of groups begins with the owner; if neither scope nor selector names
    one, all jobs are scanned instead. Sites have no index: a job gets its site as it is matched, and each match would write to all
    indexes of its row.
    """
    if not selector.states:
        yield JobIndex(_narrowest(scope, selector))
        return
    states = frozenset(selector.states)
    for rare in sorted(states & RARE):
        yield JobIndex(
            "rare state" if owner(scope, selector) is None else "rare state of owner", (rare,), rare
        )
    if states & AT_A_PILOT:
        yield JobIndex("leases", tuple(sorted(states & AT_A_PILOT)))
    if frequent := tuple(sorted(states - RARE - AT_A_PILOT)):
        yield JobIndex(_narrowest(scope, selector), frequent)


def one_index(scope: Scope, selector: Selector) -> JobIndex:
    """Return an index in which all selected jobs are found, whatever states they move to meanwhile."""
    first, *others = indexes(scope, selector)
    return JobIndex(_narrowest(scope, selector), selector.states) if others else first


def _narrowest(scope: Scope, selector: Selector) -> IndexName:
    if owner(scope, selector) is None:
        return "all"
    return "group" if selector.job_group else "owner"


def owner(scope: Scope, selector: Selector) -> str | None:
    """Return the owner of all selected jobs that the scope may see; None if neither scope nor selector names one."""
    return selector.owner if scope.owner is None else scope.owner


async def search(
    tx: Transaction, scope: Scope, selector: Selector, page: PageRequest, seconds: float, *, step: int = STEP
) -> FoundJobs:
    """Return selected jobs that have rows and that the user with this scope may see, and where the search ended.

    It ends with a full page, with the last job, or after `seconds` seconds. Each index is scanned for some jobs at first, then the one
    that is furthest behind, for as many jobs as the time allows, at most `step`.
    """
    deadline = time.monotonic() + seconds
    steps: dict[JobIndex, int] = {}
    conditions = (
        *(scope.owner, scope.group, scope.vo, selector.owner, selector.site, like(selector.name)),
        *(selector.job_group, selector.changed_since, page.alone),
    )

    async def scan(index: JobIndex, found: FoundJobs) -> FoundJobs:
        left, most = page.limit - len(found.ids), steps.get(index, min(step, FIRST_STEP))
        start = page.newest, most, found.until, owner(scope, selector), left
        states = list(index.states) or None
        began = time.monotonic()
        rows = await tx.fetch(SQL["scan"], index.name, *start, *conditions, states, index.rare_state)
        now = time.monotonic()
        steps[index] = next_step(most, now - began, deadline - now, step)
        ids = [row["job_id"] for row in rows if row["selected"]]
        # If there may be further jobs, the last row is the last that was scanned.
        stopped = rows and rows[-1]["number"] == most and len(ids) < left
        return FoundJobs(found.ids + ids, rows[-1]["job_id"] if stopped else None)

    nothing = FoundJobs([], page.after if page.after is not None else HIGHEST if page.newest else LOWEST)
    found = {index: await scan(index, nothing) for index in indexes(scope, selector)}
    while True:
        all_found = together(list(found.values()), page)
        if all_found.until is None or len(all_found.ids) == page.limit or time.monotonic() >= deadline:
            return all_found
        behind = next(index for index, each in found.items() if each.until == _end(found.values(), page))
        found[behind] = await scan(behind, found[behind])


def next_step(scanned: int, took: float, left: float, most: int) -> int:
    """Return how many jobs to scan in `left` seconds, if `scanned` jobs took `took` seconds: `FIRST_STEP` at least, and at most `most`."""
    return int(min(most, max(FIRST_STEP, scanned * left / max(took, 1e-6))))


def together(found: list[FoundJobs], page: PageRequest) -> FoundJobs:
    """Combine the results of several searches into one page. It ends at the first id at which any of the searches ended."""
    until = _end(found, page)
    # A job that moved between two searches may be in both.
    merged = dict.fromkeys(merge(*(each.ids for each in found), reverse=page.newest))
    ids = [each for each in islice(merged, page.limit) if until is None or _by(each, until, page)]
    return FoundJobs(ids, until if len(ids) < page.limit else ids[-1])


def _end(found: Iterable[FoundJobs], page: PageRequest) -> int | None:
    """Return the first id at which any of these searches ended; None if none did."""
    ends = [each.until for each in found if each.until is not None]
    return None if not ends else max(ends) if page.newest else min(ends)


def _by(job_id: JobId, until: int, page: PageRequest) -> bool:
    return job_id >= until if page.newest else job_id <= until


def like(pattern: str | None) -> str | None:
    """Return the pattern for SQL's LIKE that matches the same names as a user's pattern with * and ?; None for None."""
    if pattern is None:
        return None
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")
