"""What ended lately and how, and why jobs wait: counts for a first look, of what a user may see."""

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def outcomes(tx: Transaction, scope: Scope, seconds: float) -> list[asyncpg.Record]:
    """Return the numbers of attempts that ended within the last `seconds`, by site, outcome and reason, the largest first."""
    if scope.reach == "all":
        return await tx.fetch(SQL["outcomes_of_all"], seconds)
    return await tx.fetch(SQL["outcomes"], seconds, scope.owner, scope.group, scope.vo)


async def waits(tx: Transaction, scope: Scope, *, watched: bool) -> list[asyncpg.Record]:
    """Return the numbers of waiting jobs by the reason why they wait.

    `watched`: whether a matcher writes statistics of queues at present (`queue_stats`). Without them the jobs are counted.
    """
    return await tx.fetch(SQL["watched_waits" if watched else "waits"], scope.owner, scope.group, scope.vo)


async def pilot_ends(tx: Transaction, vo: str | None, seconds: float) -> list[asyncpg.Record]:
    """Return the numbers of pilots of a VO, or of all, that died within the last `seconds`, by element and cause."""
    return await tx.fetch(SQL["pilot_ends"], seconds, vo)
