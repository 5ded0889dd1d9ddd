"""Usage by hours: sums of the attempts that ended in hours that are over, kept when the jobs are forgotten."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)

LATE_SECONDS = 600.0
"""Seconds after its end at which an hour is summed up: no transaction that ends an attempt takes so long."""


async def close(tx: Transaction, late_seconds: float = LATE_SECONDS) -> bool:
    """Sum up hours that are over, a day of them at most; return whether there were any. One process does it at a time."""
    (row,) = await tx.fetch(SQL["next"], late_seconds)
    if row["high"] <= row["low"]:
        return False
    await tx.execute(SQL["close"], row["low"], row["high"])
    await tx.execute(SQL["closed"], row["high"])
    return True


async def report(
    tx: Transaction, may: Scope, by: Sequence[str], since: datetime, until: datetime
) -> list[asyncpg.Record]:
    """Return sums of usage within a scope from one hour to another, by some columns, outcome and reason.

    `by` holds names among vo, group, owner, site, month and day. Other columns are empty.
    """
    return await tx.fetch(SQL["report"], list(by), since, until, may.owner, may.group, may.vo)
