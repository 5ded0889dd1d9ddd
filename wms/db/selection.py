"""Selection of jobs in the database by a user's criteria, within what the user may see. Jobs have rows or are in blocks of arrays."""

import math
from itertools import chain, islice
from typing import Any

import msgspec

from wms.auth.policy import Scope
from wms.db import block, job_search, submission
from wms.db.database import Transaction
from wms.db.job_search import FoundJobs, PageRequest, like
from wms.db.sql import load
from wms.errors import Rejected
from wms.ids import JobId, intersection, joined
from wms.messages.commands import Selector

SQL = load(__file__)

SEARCH_SECONDS = 0.012
"""For how many seconds job rows are scanned for one page."""
NO_JOB = ((0, 0),)
"""A range of ids that contains no job."""


def is_empty(selector: Selector) -> bool:
    """Return whether the selector has no criterion at all. Such a selector selects no jobs."""
    return selector == Selector()


async def select(tx: Transaction, scope: Scope, selector: Selector, page: PageRequest) -> list[JobId]:
    """Return the ids of one page of the selected jobs that the user with this scope may see. The search is not bounded in time."""
    rows = FoundJobs(await select_rows(tx, scope, selector, page))
    return job_search.together([rows, await _in_blocks(tx, scope, selector, page)], page).ids


async def search(
    tx: Transaction, scope: Scope, selector: Selector, page: PageRequest, seconds: float = SEARCH_SECONDS
) -> FoundJobs:
    """Return one page of the selected jobs that the user with this scope may see. It may be short or empty though others follow.

    Job rows are scanned for `seconds` seconds, and for one step more, so that a page takes little time.
    """
    if is_empty(selector) or selector.ids:
        ids = await select(tx, scope, selector, page)
        return FoundJobs(ids, ids[-1] if len(ids) == page.limit else None)
    rows = await job_search.search(tx, scope, selector, page, seconds)
    return job_search.together([rows, await _in_blocks(tx, scope, selector, page)], page)


async def _in_blocks(tx: Transaction, scope: Scope, selector: Selector, page: PageRequest) -> FoundJobs:
    if page.alone:
        return FoundJobs([])
    parts = await block.select(tx, _beyond(scope, selector, page), newest=page.newest, limit=page.limit)
    step = -1 if page.newest else 1
    ids = (range(low, high + 1)[::step] for _, ranges in parts for low, high in ranges[::step])
    return FoundJobs([JobId(each) for each in islice(chain.from_iterable(ids), page.limit)])


def _beyond(scope: Scope, selector: Selector, page: PageRequest) -> block.JobFilter:
    if is_empty(selector):
        return block.JobFilter(ranges=(), scope=scope)
    lowest, highest = block.EVERYTHING
    if page.after is not None and page.newest:
        highest = page.after - 1
    elif page.after is not None:
        lowest = page.after + 1
    return block.wanted(scope, selector, (lowest, highest))


async def select_rows(tx: Transaction, scope: Scope, selector: Selector, page: PageRequest) -> list[JobId]:
    """Return the ids of one page of the selected jobs that have job rows. Jobs in blocks of arrays are left out."""
    if is_empty(selector):
        return []
    if selector.ids:
        columns = [*_scope(scope), *_wanted(selector), page.after, page.limit, page.alone]
        rows = await tx.fetch(SQL["of_ranges"], *_ranges(selector), *columns)
        return list(dict.fromkeys(row["job_id"] for row in rows))
    return (await job_search.search(tx, scope, selector, page, math.inf)).ids


async def of_submission(tx: Transaction, owner: str, selector: Selector) -> Selector:
    """Return the selector with its submission id replaced by the ids of the jobs that the submission made.

    Raise Rejected if neither the selector's owner, nor `owner` if it names none, made such a submission.
    """
    if selector.submission is None:
        return selector
    ids = await submission.ids(tx, selector.owner or owner, selector.submission)
    if not ids:
        raise Rejected(
            "NO_SUCH_SUBMISSION",
            f"you made no submission with the id {selector.submission}",
            "the id is what `wms submit --id` was given, or `wms submit --json` printed",
        )
    if selector.ids:
        ids = list(intersection(joined(ids), joined(selector.ids)) or NO_JOB)
    return msgspec.structs.replace(selector, ids=joined(ids), submission=None)


async def lines(tx: Transaction, job_ids: list[JobId]) -> list[dict[str, Any]]:
    """Return what a job list shows of these jobs, in the order given. Jobs that do not exist are absent."""
    rows = {row["job_id"]: dict(row) for row in await tx.fetch(SQL["lines"], job_ids)}
    if len(rows) < len(job_ids):
        rows |= await block.lines(tx, [each for each in job_ids if each not in rows])
    return [rows[job_id] for job_id in job_ids if job_id in rows]


def _scope(scope: Scope) -> tuple[str | None, str | None, str | None]:
    return scope.owner, scope.group, scope.vo


def _wanted(selector: Selector) -> tuple[Any, ...]:
    states = list(selector.states) or None
    beside = (selector.job_group, selector.changed_since)
    return selector.owner, states, selector.site, like(selector.name), *beside


def _ranges(selector: Selector) -> tuple[list[int], list[int]]:
    """Return the first and the last ids of the selector's ranges, which do not overlap, so that each job is counted once."""
    ranges = joined(selector.ids)
    return [low for low, _ in ranges], [high for _, high in ranges]
