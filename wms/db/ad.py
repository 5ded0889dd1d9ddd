"""Ads of computing elements, by which sites describe them, in the database.

An ad is replaced by a newer one of the same element. Expired ads are deleted after `KNOWN_DAYS` days.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import asyncpg
import msgspec
import structlog

from wms.bounded_cache import BoundedCache
from wms.classad.value import ERROR
from wms.db import ce_endpoint
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.ids import CeId
from wms.matching.ads import advertised
from wms.messages.ads import Advertise, Withdraw
from wms.site import AdvertisedElement, ComputingElement, forwarding, lasting

SQL = load(__file__)

log = structlog.get_logger()

KNOWN_DAYS = 30
"""Days for which a computing element counts as existing after its ad expired.

Until then, jobs that only this element can run are not reported as impossible.
"""


SITE_ELEMENTS = 2_000
"""The most computing elements of one site that are known at a time, those whose ads expired included."""
SITE_BYTES = 64 * 1024 * 1024
"""The most bytes, as text, of the ads of one site together. All services that plan or match read them."""

_KNOWN_MOST = 50_000
_known = BoundedCache[tuple[str, str, datetime], ComputingElement](_KNOWN_MOST)
"""Decoded computing elements, by site, name and when the ad arrived. An ad with the same arrival time is unchanged."""


class _Row(NamedTuple):
    """An ad with its database columns: JSON texts, and a digest of them that tells whether two ads have the same content."""

    ad: Advertise
    element: str
    attributes: str
    expressions: str
    digest: bytes

    def size(self) -> tuple[Any, ...]:
        texts = (self.element, self.attributes, self.expressions, self.ad.requirements, self.ad.rank)
        return (self.digest, sum(len(each.encode()) for each in texts))

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


async def store(tx: Transaction, ads: Sequence[Advertise]) -> set[CeId]:
    """Store ads of computing elements, at most one for each element. Return the elements whose stored ad is now the given one.

    An ad with unchanged content only extends the life of the stored one, and counts as stored. An ad older than the stored one is ignored.
    """
    rows = {each.element.ce_id: _row(each) for each in ads}
    renewed = await _write(tx, SQL["renew"], rows, _Row.said_again)
    return renewed | await _write(
        tx, SQL["store"], {place: rows[place] for place in rows.keys() - renewed}, _Row.columns
    )


async def beyond(tx: Transaction, ads: Sequence[Advertise]) -> set[CeId]:
    """Return those elements whose ads their sites have no room for. `ads` has at most one ad for each element.

    An ad without a change, and one that is no larger than before, always has room.
    """
    if not ads:
        return set()
    rows = {each.element.ce_id: _row(each) for each in ads}
    values = [(*place, *rows[place].size()) for place in sorted(rows)]
    found = await tx.fetch(SQL["beyond"], *dense(values), SITE_ELEMENTS, SITE_BYTES)
    return {CeId(row["site"], row["ce"]) for row in found}


async def _write(
    tx: Transaction, statement: str, rows: Mapping[CeId, _Row], columns: Callable[[_Row], tuple[Any, ...]]
) -> set[CeId]:
    if not rows:
        return set()
    values = [(*place, *columns(rows[place])) for place in sorted(rows)]
    found = await tx.fetch(statement, *dense(values))
    return {CeId(row["site"], row["ce"]) for row in found}


def _row(ad: Advertise) -> _Row:
    said = tuple(
        msgspec.json.encode(each, order="deterministic")
        for each in (ad.element, ad.attributes, ad.expressions, ad.requirements, ad.rank)
    )
    element, attributes, expressions = (each.decode() for each in said[:3])
    digest = blake2b(b"\n".join(said), digest_size=16).digest()
    return _Row(ad, element, attributes, expressions, digest)


async def withdraw(tx: Transaction, gone: Sequence[Withdraw]) -> set[CeId]:
    """Let the ads of computing elements expire at once.

    Return the elements whose ad was withdrawn. An element without an ad, or with an ad that is newer than the withdrawal, is left out.
    """
    if not gone:
        return set()
    columns = [
        [each.site for each in gone],
        [each.ce for each in gone],
        [each.advertised_at for each in gone],
    ]
    return {CeId(row["site"], row["ce"]) for row in await tx.fetch(SQL["withdraw"], *columns)}


async def forget_expired(tx: Transaction) -> int:
    """Delete the ads of computing elements that expired more than `KNOWN_DAYS` days ago; return the number of deleted ads."""
    return await tx.execute(SQL["forget"], KNOWN_DAYS)


async def forget(tx: Transaction, site: str, ce: str) -> set[CeId]:
    """Delete the ad of computing element `ce`, or all ads of the site if `ce` is empty. Return the elements that had an ad.

    The stored decisions on how many pilots to send to these elements are deleted too.
    """
    return {CeId(row["site"], row["ce"]) for row in await tx.fetch(SQL["forget_place"], site, ce)}


async def fresh(tx: Transaction) -> list[ComputingElement]:
    """Return the computing elements of all sites whose ads have not expired, each with its ClassAd if the ad has one."""
    rows = await tx.fetch(SQL["fresh"])
    return list((await elements(tx, rows)).values())


async def elements(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> dict[CeId, ComputingElement]:
    """Decode the ads of the given elements. Return the computing elements by site and name, in the order of `rows`.

    Each row has `site`, `ce`, `received_at` (when the ad arrived) and `pilot_seconds` (lifetime of pilots there). Elements that were
    deleted meanwhile, or whose ad cannot be read, are absent.
    """
    names = [(row["site"], row["ce"], row["received_at"]) for row in rows]
    found = {CeId(site, ce): _known.get((site, ce, received_at)) for site, ce, received_at in names}
    missing = [place for place, element in found.items() if element is None]
    if missing:
        columns = [place.site for place in missing], [place.ce for place in missing]
        for row in await tx.fetch(SQL["elements"], *columns):
            place = CeId(row["site"], row["ce"])
            if element := _element(row):
                found[place] = _known[*place, row["received_at"]] = element
            # To parse an ad takes milliseconds.
            await asyncio.sleep(0)
    lives = {CeId(row["site"], row["ce"]): row["pilot_seconds"] for row in rows}
    forwards = await ce_endpoint.forwards(tx)
    return {
        place: forwarding(lasting(element, lives[place]), forwards.get(place))
        for place, element in found.items()
        if element is not None
    }


async def set_pilot_lifetimes(tx: Transaction, seconds: Mapping[CeId, float]) -> None:
    """Store, for each computing element, the lifetime in seconds of the pilots that are sent to it. Elements without an ad are ignored."""
    if seconds:
        await tx.execute(
            SQL["tell_lives"], *dense([(*place, seconds[place]) for place in sorted(seconds)], 3)
        )


def _element(row: asyncpg.Record) -> ComputingElement | None:
    element = element_of(row["element"])
    if element is None:
        return None
    text = _text(row["attributes"], row["expressions"], row["requirements"], row["rank"])
    return AdvertisedElement(**msgspec.structs.asdict(element), ad=text) if text else element


# Ads are repeated all the time and seldom change.
@lru_cache(maxsize=10_000)
def element_of(text: str) -> ComputingElement | None:
    """Decode the JSON text of a computing element, as the ad table holds it.

    Return None, and log a warning, if it cannot be read or a value is out of bounds. Ads stored before there were bounds may be so.
    """
    try:
        return msgspec.json.decode(text, type=ComputingElement)
    except UNDECODABLE as error:
        log.warning("element passed over: its ad cannot be read", element=text[:500], error=str(error))
        return None


@lru_cache(maxsize=4_096)
def _text(attributes: str, expressions: str, requirements: str, rank: str) -> str:
    """Return the columns of an ad as ClassAd text in canonical form. An unreadable ad becomes one whose requirements match no job."""
    try:
        return advertised(
            msgspec.json.decode(attributes), msgspec.json.decode(expressions), requirements, rank
        )
    except Rejected:
        return advertised({"Requirements": ERROR}, {}, "", "")
