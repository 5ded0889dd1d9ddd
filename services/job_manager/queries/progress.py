"""Answers about progress: how many jobs of each job group and job array are in which state."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import asyncpg
from msgspec.structs import replace

from services.job_manager.queries.paging import fitting
from wms.auth.policy import Scope, scope
from wms.auth.principal import Principal
from wms.bounded_cache import BoundedCache
from wms.db import progress
from wms.db.database import Transaction
from wms.job.state import ENDED
from wms.messages import queries as asked
from wms.messages import replies

RECENT_SECONDS = 600.0
"""A job counts as ended recently if it ended within this many seconds."""
SHOWN_FOR = timedelta(days=7)
"""How long groups and arrays are shown after the last change of a job, once all their jobs have ended."""

Key: TypeAlias = tuple[str, int]
"""What a line of progress is about. For a job group it is the group's name and 0; for a job array it is "" and the id of its description.

The key ("", 0) stands for all jobs without group and array.
"""


KEPT_FOR = 5.0
"""How long counts are kept in memory, as a multiple of the time that counting took."""
KEPT_SCOPES = 50


class ProgressCounts:
    """Counts of jobs by group, array and state, kept for a while so that repeated queries by many users cost little.

    A million jobs take some hundred milliseconds to count. Counts of a few jobs are kept for a few milliseconds only.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without counts. `clock` returns monotonic seconds."""
        self._clock = clock
        self._kept: BoundedCache[Scope, tuple[float, list[asyncpg.Record]]] = BoundedCache(KEPT_SCOPES)
        """For each scope, the monotonic time until which its counts are valid, and the counts."""

    async def read(self, tx: Transaction, sees: Scope) -> list[asyncpg.Record]:
        """Return the counts of the jobs in a scope: from memory if they are still valid, else from the database."""
        began = self._clock()
        until, rows = self._kept.get(sees, (began, []))
        if began < until:
            return rows
        rows = await progress.counts(tx, sees, RECENT_SECONDS)
        now = self._clock()
        self._kept[sees] = now + KEPT_FOR * (now - began), rows
        return rows


async def show_progress(
    tx: Transaction, principal: Principal, query: asked.ShowProgress, counts: ProgressCounts
) -> replies.Progress:
    """Return the progress of the groups and arrays whose jobs the asker may see."""
    rows_by_key: dict[Key, list[asyncpg.Record]] = {}
    for row in await counts.read(tx, scope(principal, "see")):
        rows_by_key.setdefault((row["job_group"], row["description_id"]), []).append(row)
    lines = {key: _line(key, rows) for key, rows in rows_by_key.items()}
    shown = _chosen(lines, await tx.now(), query.limit)
    arrays = await progress.arrays(tx, [description for _, description in shown if description])
    return replies.Progress(
        query_id=query.query_id,
        client=query.client,
        recent_seconds=RECENT_SECONDS,
        lines=tuple(fitting(_named(lines[key], arrays.get(key[1])) for key in shown)),
    )


def _line(key: Key, rows: Sequence[asyncpg.Record]) -> replies.ProgressLine:
    counts = Counter[str]()
    for row in rows:
        counts[row["state"]] += row["jobs"]
    return replies.ProgressLine(
        job_group=key[0],
        first=min(row["first"] for row in rows),
        counts=dict(counts),
        ended_recently=sum(row["changed_recently"] for row in rows if row["state"] in ENDED),
        submitted_at=min(row["submitted_at"] for row in rows),
        changed_at=max(row["changed_at"] for row in rows),
    )


def _chosen(lines: dict[Key, replies.ProgressLine], now: datetime, limit: int) -> list[Key]:
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
