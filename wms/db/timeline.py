"""The times of jobs: submitted, offered, begun, ended. For reports and benchmarks. Reads only."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


class JobTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One job's times by the database's clock, and how it ended."""

    job_id: int
    owner: str
    vo: str
    name: str
    state: str
    reason: str
    site: str | None
    pilot_id: str | None
    attempts: int
    submitted_at: datetime
    offered_at: datetime | None
    """When it was first offered to a pilot."""
    started_at: datetime | None
    """When its payload last began."""
    ended_at: datetime | None
    exit_code: int | None
    reason_text: str | None
    wall_seconds: float | None

    @property
    def wait_seconds(self) -> float | None:
        """Seconds from submission to the payload's begin; None if it never began."""
        return None if self.started_at is None else (self.started_at - self.submitted_at).total_seconds()


async def of_ranges(tx: Transaction, ranges: Sequence[tuple[int, int]]) -> list[JobTimes]:
    """Return the times of the jobs of these ranges of ids, by id."""
    rows = await tx.fetch(SQL["of_ranges"], [low for low, _ in ranges], [high for _, high in ranges])
    return [JobTimes(**row) for row in rows]


async def pilots_since(tx: Transaction, began_at: datetime) -> tuple[int, int]:
    """Return how many pilots were sent since a time, and how many of them ended at least one job."""
    row = await tx.fetchrow(SQL["pilots"], began_at)
    assert row is not None
    return row["sent"], row["used"]
