"""Ads in the database: stored, replaced by newer ones, known for a while after they expire."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from wms.db.database import Transaction
from wms.db.limit import Place
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


class _Row(NamedTuple):
    """An ad, with its parts as they are stored."""

    ad: Advertise
    element: str
    attributes: str
    expressions: str
    digest: bytes

    def said_again(self) -> tuple[Any, ...]:
        return (self.ad.advertised_at, self.ad.lifetime_seconds, self.digest)

    def columns(self) -> tuple[Any, ...]:
        return (
            self.element,
            self.ad.advertised_at,
            self.ad.lifetime_seconds,
            self.attributes,
            self.expressions,
            self.ad.requirements,
            self.ad.rank,
            self.digest,
        )


async def store(tx: Transaction, ads: Sequence[Advertise]) -> set[Place]:
    """Store the newest ad of each element; return the elements whose newest it is, whatever it says.

    An ad that says nothing new only renews its life.
    """
    newest: dict[Place, _Row] = {}
    for each in sorted(ads, key=lambda ad: ad.advertised_at):
        newest[each.element.site, each.element.ce] = _row(each)
    if not newest:
        return set()
    renewed = await _write(tx, SQL["renew"], newest, _Row.said_again)
    return renewed | await _write(
        tx, SQL["store"], {place: newest[place] for place in newest.keys() - renewed}, _Row.columns
    )


async def _write(
    tx: Transaction, statement: str, rows: Mapping[Place, _Row], columns: Callable[[_Row], tuple[Any, ...]]
) -> set[Place]:
    if not rows:
        return set()
    values = [(*place, *columns(rows[place])) for place in sorted(rows)]
    found = await tx.fetch(statement, *(list(column) for column in zip(*values, strict=True)))
    return {(row["site"], row["ce"]) for row in found}


def _row(ad: Advertise) -> _Row:
    said = tuple(
        msgspec.json.encode(each, order="deterministic")
        for each in (ad.element, ad.attributes, ad.expressions, ad.requirements, ad.rank)
    )
    element, attributes, expressions = (each.decode() for each in said[:3])
    digest = blake2b(b"\n".join(said), digest_size=16).digest()
    return _Row(ad, element, attributes, expressions, digest)


async def withdraw(tx: Transaction, gone: Sequence[Withdraw]) -> set[Place]:
    """Note that elements went away; return those that had not come back since."""
    if not gone:
        return set()
    columns = [
        [each.site for each in gone],
        [each.ce for each in gone],
        [each.advertised_at for each in gone],
    ]
    return {(row["site"], row["ce"]) for row in await tx.fetch(SQL["withdraw"], *columns)}


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
