"""Counts for an overview of the system: how attempts and pilots ended lately, and why jobs wait."""

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)


async def outcomes(tx: Transaction, seconds: float) -> list[asyncpg.Record]:
    """Return rows of the numbers of all attempts that ended within the last `seconds`, by site, outcome and reason, the largest first."""
    return await tx.fetch(SQL["outcomes"], seconds)


async def outcomes_of_owners(tx: Transaction, seconds: float) -> list[asyncpg.Record]:
    """Return such rows for each owner, in no order. Each attempt's job is looked at: some hundred milliseconds for 100,000 attempts."""
    return await tx.fetch(SQL["outcomes_of_owners"], seconds)


async def waits(tx: Transaction, scope: Scope, *, watched: bool) -> list[asyncpg.Record]:
    """Return rows of the numbers of waiting jobs, by the reason why they wait. Only jobs that the user with this scope may see are counted.

    `watched` says whether a matcher writes statistics of queues at present (`queue_stats`). If not, the jobs themselves are counted.
    """
    return await tx.fetch(SQL["watched_waits" if watched else "waits"], scope.owner, scope.group, scope.vo)


async def pilot_ends(tx: Transaction, vo: str | None, seconds: float) -> list[asyncpg.Record]:
    """Return rows of the numbers of pilots that did not end by themselves within the last `seconds`, by computing element and cause.

    `vo` restricts them to the pilots of a VO; None: all.
    """
    return await tx.fetch(SQL["pilot_ends"], seconds, vo)
