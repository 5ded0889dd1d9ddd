"""How jobs went: the last attempt of each, as rows of a table."""

from collections.abc import Sequence

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.messages.replies.jobs import JobResult

SQL = load(__file__)


async def of_jobs(tx: Transaction, job_ids: Sequence[JobId]) -> dict[JobId, JobResult]:
    """Return how the last attempt of each of these jobs went. Jobs of arrays that nobody has asked for yet are absent."""
    rows = [dict(row) for row in await tx.fetch(SQL["of_jobs"], job_ids)]
    return {
        row.pop("job_id"): JobResult(**row | {"parameters": msgspec.json.decode(row["parameters"] or "{}")})
        for row in rows
    }
