"""Usage by hour: for each past hour, the sums of the attempts that ended in it. They are kept when the jobs are deleted."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from wms.auth.policy import Scope
from wms.db.database import Transaction
from wms.db.sql import load

SQL = load(__file__)

LATE_SECONDS = 600.0
"""Seconds between the end of an hour and its summing up. Transactions that end attempts take less time, so that none is missed."""


async def close(tx: Transaction, late_seconds: float = LATE_SECONDS) -> bool:
    """Sum up past hours, at most 24; return whether there were any. Only one process does it at a time.

    An hour is summed up `late_seconds` seconds after its end.
    """
    (row,) = await tx.fetch(SQL["next"], late_seconds)
    if row["high"] <= row["low"]:
        return False
    await tx.execute(SQL["close"], row["low"], row["high"])
    await tx.execute(SQL["closed"], row["high"])
    return True


async def report(
    tx: Transaction, may: Scope, by: Sequence[str], since: datetime, until: datetime
) -> list[asyncpg.Record]:
    """Return rows of usage sums between two hours, grouped by the columns in `by`, outcome and reason.

    Only usage within the scope is counted. `by` holds names among vo, group, owner, site, month and day. Other columns are empty.
    """
    return await tx.fetch(SQL["report"], list(by), since, until, may.owner, may.group, may.vo)
