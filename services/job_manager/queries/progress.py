"""Answers about progress: how far job groups and job arrays are."""

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
"""How long ago a job may have ended to count as ended recently."""
SHOWN_FOR = timedelta(days=7)
"""How long groups and arrays are shown after the last change of a job, once all their jobs have ended."""

Key: TypeAlias = tuple[str, int]
"""A job group and 0, or no group and the description of a job array; for single jobs no group and 0."""


KEPT_FOR = 5.0
"""How many times as long as it took to count them counts are kept."""
KEPT_SCOPES = 50


class ProgressCounts:
    """Counts of jobs by group, array and state, kept for a while, so that many who look at the same jobs cost little.

    A million jobs take some hundred milliseconds to count; counts of a few jobs are kept for an instant.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns a time in seconds that never goes back."""
        self._clock = clock
        self._kept: BoundedCache[Scope, tuple[float, list[asyncpg.Record]]] = BoundedCache(KEPT_SCOPES)
        """By scope the time until which the rows are good, and the rows."""

    async def read(self, tx: Transaction, sees: Scope) -> list[asyncpg.Record]:
        """Return the counts of the jobs in a scope."""
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
    """Return the line with the name and the ids of its job array, if it is one's."""
    if array is None:
        return line
    return replace(line, first=array["first"], last=array["last"], name=array["name"])
