"""The progress of job groups and job arrays: numbers of jobs by state. Only jobs that a user may see are counted."""

from collections.abc import Iterable

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def counts(tx: Transaction, scope: Scope, recent_seconds: float) -> list[asyncpg.Record]:
    """Return rows of the numbers of jobs by group, description id and state, and of those that changed within the last `recent_seconds`.

    The description id is set only for jobs of arrays without a group; otherwise it is 0. Several rows may have the same group, description
    id and state.
    """
    columns = (scope.owner, scope.group, scope.vo, recent_seconds)
    # Blocks first: jobs that become rows between the statements are counted twice, not missed.
    in_blocks = await tx.fetch(SQL["of_blocks"], *columns)
    return [*in_blocks, *await tx.fetch(SQL["of_rows"], *columns)]


async def arrays(tx: Transaction, descriptions: Iterable[int]) -> dict[int, asyncpg.Record]:
    """Return the first id, the last id and the name of the job arrays that were made of these descriptions."""
    rows = await tx.fetch(SQL["arrays"], list(descriptions))
    return {row["description_id"]: row for row in rows}
