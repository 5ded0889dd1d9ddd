"""Co-allocated jobs in the database: groups of jobs that must start together, of which some cannot any more."""

from typing import NamedTuple

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import State

SQL = load(__file__)


class TornGroup(NamedTuple):
    """A group of jobs that must start together, of which some are placed or run and at least one is not."""

    job_ids: range
    away: JobId
    """The id of the first job of the group that is neither placed nor runs."""
    away_state: State


async def torn(tx: Transaction, limit: int) -> list[TornGroup]:
    """Return up to `limit` groups of co-allocated jobs of which some are placed or run, while others cannot join them any more."""
    return [
        TornGroup(
            range(row["leader"], row["leader"] + row["size"]), JobId(row["away"]), State(row["away_state"])
        )
        for row in await tx.fetch(SQL["torn"], limit)
    ]
