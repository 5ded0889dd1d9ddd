"""Ads in the database: stored, replaced by newer ones, known for a while after they expire."""

from collections.abc import Sequence
from typing import Any

import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.messages.ads import Advertise, Withdraw
from wms.site import ComputingElement

SQL = load(__file__)

KNOWN_DAYS = 30
"""For so long an element whose ad has expired is known: what only it can do is impossible now, not for ever."""


class Matchable(msgspec.Struct, frozen=True, kw_only=True):
    """What an element tells to expressions: values by their attributes' names, and expressions as text."""

    site: str
    ce: str
    attributes: dict[str, Any]
    expressions: dict[str, str]
    requirements: str
    rank: str


async def store(tx: Transaction, ads: Sequence[Advertise]) -> None:
    """Store the newest ad of each element."""
    newest: dict[tuple[str, str], Advertise] = {}
    for each in sorted(ads, key=lambda ad: ad.advertised_at):
        newest[each.element.site, each.element.ce] = each
    kept = [newest[place] for place in sorted(newest)]
    if kept:
        await tx.execute(
            SQL["store"],
            [each.element.site for each in kept],
            [each.element.ce for each in kept],
            [msgspec.json.encode(each.element).decode() for each in kept],
            [each.advertised_at for each in kept],
            [each.lifetime_seconds for each in kept],
            [msgspec.json.encode(each.attributes).decode() for each in kept],
            [msgspec.json.encode(each.expressions).decode() for each in kept],
            [each.requirements for each in kept],
            [each.rank for each in kept],
        )


async def withdraw(tx: Transaction, gone: Sequence[Withdraw]) -> None:
    """Note that elements went away."""
    if gone:
        columns = [
            [each.site for each in gone],
            [each.ce for each in gone],
            [each.advertised_at for each in gone],
        ]
        await tx.execute(SQL["withdraw"], *columns)


async def forget_expired(tx: Transaction) -> int:
    """Forget elements that have long not advertised themselves; return how many."""
    return await tx.execute(SQL["forget"], KNOWN_DAYS)


async def fresh(tx: Transaction) -> list[ComputingElement]:
    """Return the elements that advertise themselves now."""
    rows = await tx.fetch(SQL["fresh"])
    return [msgspec.json.decode(row["element"], type=ComputingElement) for row in rows]


async def matchable(tx: Transaction) -> list[Matchable]:
    """Return what the elements that advertise themselves now tell to expressions."""
    return [
        Matchable(
            site=row["site"],
            ce=row["ce"],
            attributes=msgspec.json.decode(row["attributes"]),
            expressions=msgspec.json.decode(row["expressions"]),
            requirements=row["requirements"],
            rank=row["rank"],
        )
        for row in await tx.fetch(SQL["matchable"])
    ]
