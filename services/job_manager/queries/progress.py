"""Answers about progress: how many jobs of each job group and job array are in which state."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeAlias

import asyncpg
from msgspec.structs import replace

from services.job_manager.queries.kept_counts import KeptCounts
from services.job_manager.queries.paging import fitting
from wms.auth.policy import Scope, scope
from wms.auth.principal import Principal
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

KEPT_SCOPES = 50


class ProgressCounts(NamedTuple):
    """The counts of the jobs that a scope may see: those to show, and those of a count under way, which the next query continues.

    While a count is under way, the last complete one is shown, or, if there was none, the count so far: that of the newest jobs.
    """

    shown: CountedJobs
    begun: CountedJobs | None


KeptProgress: TypeAlias = KeptCounts[Scope, ProgressCounts]


async def count_progress(tx: Transaction, sees: Scope, last: ProgressCounts | None) -> ProgressCounts:
    """Return the counts of the jobs in a scope, as far as one query may count. `last` is what the query before returned; None begins."""
    found = await progress.count(tx, sees, RECENT_SECONDS, last.begun if last else None)
    if found.counted_from is None:
        return ProgressCounts(found, None)
    has_whole = last is not None and last.shown.counted_from is None
    return ProgressCounts(last.shown if last is not None and has_whole else found, found)


async def show_progress(
    tx: Transaction, principal: Principal, query: asked.ShowProgress, kept: KeptProgress
) -> replies.Progress:
    """Return the progress of the groups and arrays whose jobs the asker may see."""
    sees = scope(principal, "see")
    counted = (await kept.read(sees, partial(count_progress, tx, sees))).shown
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
