"""Decisions in the database: for each computing element, why the pilot submitter's last plan sent pilots there or not.

They are only shown to users and operators.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId
from wms.provisioning.plan_report import ElementDecision

SQL = load(__file__)


async def write(tx: Transaction, decisions: Sequence[ElementDecision]) -> None:
    """Store decisions on computing elements, at most one for each. They replace earlier decisions."""
    if decisions:
        texts = [msgspec.json.encode(each).decode() for each in decisions]
        places = [each.site for each in decisions], [each.ce for each in decisions]
        await tx.execute(SQL["write"], *places, texts)


async def keep_only(tx: Transaction, places: Collection[CeId]) -> None:
    """Delete the stored decisions on all computing elements but these."""
    await tx.execute(SQL["keep_only"], [site for site, _ in places], [ce for _, ce in places])


async def read(tx: Transaction, site: str = "") -> list[tuple[datetime, ElementDecision]]:
    """Return the last decision on each computing element, with the time when it was stored. An empty `site` means all sites."""
    return [
        (row["decided_at"], msgspec.json.decode(row["decision"], type=ElementDecision))
        for row in await tx.fetch(SQL["read"], site)
    ]
