"""Co-allocated jobs in the database: groups that cannot start together any more."""

from typing import NamedTuple

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import JobId
from wms.job.state import State

SQL = load(__file__)


class TornGroup(NamedTuple):
    """A group of which some jobs are placed or run, and one is not any more."""

    job_ids: range
    away: JobId
    """The first job that is not placed."""
    away_state: State


async def torn(tx: Transaction, limit: int) -> list[TornGroup]:
    """Return up to `limit` groups of which some jobs are placed or run, while others cannot start with them."""
    return [
        TornGroup(
            range(row["leader"], row["leader"] + row["size"]), JobId(row["away"]), State(row["away_state"])
        )
        for row in await tx.fetch(SQL["torn"], limit)
    ]
