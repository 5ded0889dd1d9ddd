"""Answers about progress: how many jobs of each job group and job array are in which state."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

import asyncpg
from msgspec.structs import replace

from services.job_manager.queries.paging import fitting
from wms.auth.policy import Scope, scope
from wms.auth.principal import Principal
from wms.bounded_cache import BoundedCache
from wms.db import progress
from wms.db.database import Transaction
from wms.db.progress import CountedJobs, StateCount
from wms.job.state import ENDED, State
from wms.messages import queries as asked
from wms.messages import replies

RECENT_SECONDS = 600.0
"""A job counts as ended recently if it ended within this many seconds."""
SHOWN_FOR = timedelta(days=7)
"""How long groups and arrays are shown after the last change of a job, once all their jobs have ended."""

LineKey: TypeAlias = tuple[str, int]
"""What a line of progress is about. For a job group it is the group's name and 0; for a job array it is "" and the id of its description.

The key ("", 0) stands for all jobs without group and array.
"""


KEPT_FOR = 5.0
"""How long counts are kept in memory, as a multiple of the time that counting took."""
KEPT_SCOPES = 50


class _KeptCounts(NamedTuple):
    """The counts of jobs kept for a scope (the jobs that a user may see): those that are shown, and those of a count under way.

    A count that one query could not complete in its time is continued by the next query.
    """

    until: float
    """In monotonic seconds."""
    shown: CountedJobs
    begun: CountedJobs | None


class ProgressCounts:
    """Counts of jobs by group, array and state, kept for a while so that repeated queries by many users cost little.

    A million jobs take some hundred milliseconds to count. Counts of a few jobs are kept for a few milliseconds only. If there are so many
    jobs that one query cannot count them all in its time, the next queries continue. Until then the last complete counts are shown, or, at
    first, those of the newest jobs.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without counts. `clock` returns monotonic seconds."""
        self._clock = clock
        self._kept: BoundedCache[Scope, _KeptCounts] = BoundedCache(KEPT_SCOPES)

    async def read(self, tx: Transaction, sees: Scope) -> CountedJobs:
        """Return the counts of the jobs in a scope: from memory if they are still valid, else from the database."""
        began = self._clock()
        kept = self._kept.get(sees)
        if kept is not None and began < kept.until:
            return kept.shown
        found = await progress.count(tx, sees, RECENT_SECONDS, kept.begun if kept else None)
        is_whole = found.counted_from is None
        has_whole = kept is not None and kept.shown.counted_from is None
        shown = kept.shown if kept is not None and has_whole and not is_whole else found
        now = self._clock()
        self._kept[sees] = _KeptCounts(now + KEPT_FOR * (now - began), shown, None if is_whole else found)
        return shown


async def show_progress(
    tx: Transaction, principal: Principal, query: asked.ShowProgress, counts: ProgressCounts
) -> replies.Progress:
    """Return the progress of the groups and arrays whose jobs the asker may see."""
    counted = await counts.read(tx, scope(principal, "see"))
    by_line: dict[LineKey, dict[State, StateCount]] = {}
    for (job_group, description_id, state), each in counted.counts.items():
        by_line.setdefault((job_group, description_id), {})[state] = each
    lines = {key: _line(key, by_state) for key, by_state in by_line.items()}
    shown = _chosen(lines, await tx.now(), query.limit)
    arrays = await progress.arrays(tx, [description for _, description in shown if description])
    return replies.Progress(
        query_id=query.query_id,
        client=query.client,
        recent_seconds=RECENT_SECONDS,
        lines=tuple(fitting(_named(lines[key], arrays.get(key[1])) for key in shown)),
        counted_from=counted.counted_from,
    )


def _line(key: LineKey, by_state: Mapping[State, StateCount]) -> replies.ProgressLine:
    counts = by_state.values()
    return replies.ProgressLine(
        job_group=key[0],
        first=min(each.first for each in counts),
        counts={str(state): each.jobs for state, each in by_state.items()},
        ended_recently=sum(each.changed_recently for state, each in by_state.items() if state in ENDED),
        submitted_at=min(each.submitted_at for each in counts),
        changed_at=max(each.changed_at for each in counts),
    )


def _chosen(lines: dict[LineKey, replies.ProgressLine], now: datetime, limit: int) -> list[LineKey]:
    """Return the keys of the lines to show: those with jobs that have not ended, then the newest."""
    shown = [key for key, line in lines.items() if _lives(line) or line.changed_at > now - SHOWN_FOR]
    return sorted(shown, key=lambda key: (not _lives(lines[key]), -lines[key].first))[:limit]


def _lives(line: replies.ProgressLine) -> bool:
    return any(state not in ENDED for state in line.counts)


def _named(line: replies.ProgressLine, array: asyncpg.Record | None) -> replies.ProgressLine:
    """Return the line completed with the name and ids of its job array. A line of a group is returned as it is (`array` None)."""
    if array is None:
        return line
    return replace(line, first=array["first"], last=array["last"], name=array["name"])
