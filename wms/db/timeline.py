"""The times at which jobs were submitted, offered, started and ended, for reports and benchmarks. The queries only read."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


class JobTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When one job was submitted, offered, started and ended, by the database's clock, and its result."""

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
    """The time when the job was first offered to a pilot; None if it never was."""
    started_at: datetime | None
    """The time when the job's payload last started; None if it never did."""
    ended_at: datetime | None
    """The time when the job's last attempt ended; None if none has ended."""
    exit_code: int | None
    reason_text: str | None
    wall_seconds: float | None
    """The wall-clock time of the last attempt in seconds; None without an attempt."""

    @property
    def wait_seconds(self) -> float | None:
        """Seconds from submission to the last start of the payload; None if it never started."""
        return None if self.started_at is None else (self.started_at - self.submitted_at).total_seconds()


async def of_ranges(tx: Transaction, ranges: Sequence[tuple[int, int]]) -> list[JobTimes]:
    """Return the times of the jobs in these ranges of ids, both ends included, ordered by id."""
    rows = await tx.fetch(SQL["of_ranges"], [low for low, _ in ranges], [high for _, high in ranges])
    return [JobTimes(**row) for row in rows]


async def pilots_since(tx: Transaction, began_at: datetime) -> tuple[int, int]:
    """Return how many pilots were sent since `began_at`, and in how many of them at least one job ended."""
    row = await tx.fetchrow(SQL["pilots"], began_at)
    assert row is not None
    return row["sent"], row["used"]
