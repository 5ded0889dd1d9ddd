"""Past jobs read from the database as input for simulations, in the order of job ids."""

from collections.abc import Sequence

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.matching.grouping import Requirements
from wms.simulation.recording import RecordedJob

SQL = load(__file__)


async def jobs_after(tx: Transaction, job_id: int, most: int) -> tuple[int, Sequence[RecordedJob]]:
    """Return the id of the last returned job (0 if there is none), and up to `most` jobs that ran, with ids above `job_id`."""
    rows = await tx.fetch(SQL["jobs_after"], job_id, most)
    found = [
        RecordedJob(
            at=row["submitted_at"].timestamp(),
            requirements=msgspec.json.decode(row["requirements"], type=Requirements),
            run_seconds=max(0.0, row["run_seconds"]),
            user_priority=row["user_priority"],
            site=row["site"],
        )
        for row in rows
    ]
    return (rows[-1]["job_id"] if rows else 0), found
