"""The progress of job groups and job arrays: numbers of jobs by state. Only jobs that a user may see are counted.

The time of one count is bounded, however many jobs there are. What is left then is for the next count, which continues there.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import asyncpg
import msgspec

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.job_search import HIGHEST
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import State

SQL = load(__file__)

STEP: Final = 100_000
"""How many job rows one statement counts."""
COUNT_SECONDS: Final = 0.5
"""For how many seconds job rows are counted at a time."""

Key: TypeAlias = tuple[str, int, State]
"""A job group, a description and a state. The description is that of a job array without a group; otherwise it is 0."""


class StateCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs with one key, and of those that changed recently; the lowest id, the first submission and the last change."""

    jobs: int
    changed_recently: int
    first: JobId
    submitted_at: datetime
    changed_at: datetime

    def plus(self, other: "StateCount") -> "StateCount":
        """Return the count of the jobs of both."""
        return StateCount(
            jobs=self.jobs + other.jobs,
            changed_recently=self.changed_recently + other.changed_recently,
            first=min(self.first, other.first),
            submitted_at=min(self.submitted_at, other.submitted_at),
            changed_at=max(self.changed_at, other.changed_at),
        )


class CountedJobs(msgspec.Struct, frozen=True):
    """Numbers of jobs by key. If `counted_from` is not None, jobs with rows of their own and lower ids are not counted yet."""

    counts: Mapping[Key, StateCount]
    counted_from: JobId | None = None


async def count(
    tx: Transaction,
    scope: Scope,
    recent_seconds: float,
    begun: CountedJobs | None = None,
    *,
    seconds: float = COUNT_SECONDS,
    step: int = STEP,
) -> CountedJobs:
    """Return the numbers of jobs in a scope, and of those that changed within the last `recent_seconds`.

    `begun` is a count to be continued; None begins with jobs in blocks, which are all counted, and the newest job rows. Rows are counted
    for `seconds` seconds at most, but at least `step` of them.
    """
    until = time.monotonic() + seconds
    columns = (scope.owner, scope.group, scope.vo, recent_seconds)
    counts: dict[Key, StateCount] = {}
    if begun is None:
        # Blocks first: jobs that become rows between the statements are counted twice, not missed.
        _add(counts, await tx.fetch(SQL["of_blocks"], *columns))
    else:
        counts |= begun.counts
    below = HIGHEST if begun is None or begun.counted_from is None else begun.counted_from
    while True:
        rows = await tx.fetch(SQL["of_rows"], *columns, below, step)
        _add(counts, [row for row in rows if row["visible"]])
        if sum(row["jobs"] for row in rows) < step:
            return CountedJobs(counts)
        below = min(row["first"] for row in rows)
        if time.monotonic() >= until:
            return CountedJobs(counts, JobId(below))


def _add(counts: dict[Key, StateCount], rows: Sequence[asyncpg.Record]) -> None:
    for row in rows:
        key = row["job_group"], row["description_id"], State(row["state"])
        found = StateCount(**{name: row[name] for name in StateCount.__struct_fields__})
        counts[key] = counts[key].plus(found) if key in counts else found


async def arrays(tx: Transaction, descriptions: Iterable[int]) -> dict[int, asyncpg.Record]:
    """Return the first id, the last id and the name of the job arrays that were made of these descriptions."""
    rows = await tx.fetch(SQL["arrays"], list(descriptions))
    return {row["description_id"]: row for row in rows}
