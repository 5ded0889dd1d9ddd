"""Handles `wms.resource.ads`: stores ads of computing elements and updates the queue index. The sender's token must cover the site of an ad.

One matcher receives an ad and stores it; all matchers read the stored ads.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

import msgspec
import structlog

from wms.auth.policy import may_advertise
from wms.bus.consumer import Delivery
from wms.db import ad, instance, limit
from wms.db.database import Database, Transaction
from wms.db.limit import AdAllowance
from wms.errors import Rejected
from wms.ids import CeId
from wms.matching.ad_limits import allowance, check_requirements
from wms.matching.ads import advertised as ad_text
from wms.messages.ads import Ad, Advertise, AdvertiserMessage, AdvertiserState, Withdraw
from wms.messages.replies import Refused, inbox
from wms.queue_index.index import QueueIndex
from wms.site import ad_of

log = structlog.get_logger()

AHEAD_SECONDS = 300
"""The most seconds by which the time in an ad may be ahead of the database's clock. An ad further ahead is refused."""


class ValidAd(msgspec.Struct, frozen=True, gc=False):
    """A valid ad, and how many jobs may be matched at its element until the next ad; None: no limit."""

    ad: Advertise
    allowed: int | None


class HeardAd(NamedTuple):
    """A valid ad with the message that it came in."""

    delivery: Delivery[Ad]
    valid: ValidAd

    @property
    def age(self) -> float:
        """When the ad was made, in seconds since 1970."""
        return self.valid.ad.advertised_at.timestamp()


async def handle(tx: Transaction, batch: list[Delivery[AdvertiserMessage]]) -> None:
    """Store the ads and the heartbeats of advertisers in a batch of messages."""
    states: dict[str, AdvertiserState] = {}
    said: list[Delivery[Ad]] = []
    for delivery in batch:
        message, principal = delivery.message, delivery.principal
        if not isinstance(message, AdvertiserState):
            said.append(Delivery(principal, message, delivery.prepared))
        elif principal is not None and principal.kind == "site":
            states[principal.owner] = message
    if states:
        await instance.hear(tx, states)
    await _handle_ads(tx, said)


async def _handle_ads(tx: Transaction, batch: list[Delivery[Ad]]) -> None:
    """Store the ads in a batch of messages, and delete the ads that messages withdraw, in the given transaction.

    The counters of jobs matched since an element's last ad are reset. What is refused is answered to its sender with the reason, and logged.
    """
    heard: list[HeardAd] = []
    counted: dict[CeId, AdAllowance] = {}
    gone: set[CeId] = set()
    now = await tx.now()
    for delivery in batch:
        try:
            valid = _valid(delivery, now)
        except Rejected as refusal:
            _refuse(tx, delivery, refusal)
            continue
        if isinstance(valid, ValidAd):
            heard.append(HeardAd(delivery, valid))
            continue
        counted |= (stored := await _store(tx, heard))
        heard = []
        gone = gone - stored.keys() | await ad.withdraw(tx, [valid])
    counted |= (stored := await _store(tx, heard))
    if counted:
        await limit.advertise(tx, counted)
    await limit.end_ads(tx, gone - stored.keys())


def _valid(delivery: Delivery[Ad], now: datetime) -> ValidAd | Withdraw:
    """Return what a message says of an element. Raise Rejected if its sender may not say it, or if it is faulty.

    An ad from the future would remain the newest even after later ones.
    """
    said, principal = delivery.message, delivery.principal
    site = _place(said).site
    if principal is None or not may_advertise(principal, site):
        raise Rejected(
            "NOT_YOUR_SITE", f"the token may not speak for the site {site!r}", "use a token of that site"
        )
    ahead = (said.advertised_at - now).total_seconds()
    if ahead > AHEAD_SECONDS:
        raise Rejected(
            "AD_OF_THE_FUTURE",
            f"the ad says that it was made {ahead:,.0f} s after now, and at most {AHEAD_SECONDS:,} are allowed for clocks",
            "set the clock of the machine that advertises",
        )
    if isinstance(delivery.prepared, Rejected):
        raise delivery.prepared
    return delivery.prepared or (read(said) if isinstance(said, Advertise) else said)


def _refuse(tx: Transaction, delivery: Delivery[Ad], refusal: Rejected) -> None:
    site, ce = _place(delivery.message)
    owner = delivery.principal.owner if delivery.principal else ""
    log.warning("ad refused", code=refusal.code, reason=refusal.message, owner=owner, site=site, ce=ce)
    if owner:
        answer = Refused(
            reply_to=f"{site[:99]}/{ce[:99]}",
            client="",
            code=refusal.code,
            message=refusal.message,
            remedy=refusal.remedy,
        )
        tx.send(inbox(owner), "", answer)


def _place(said: Ad) -> CeId:
    return said.element.ce_id if isinstance(said, Advertise) else CeId(said.site, said.ce)


def read(said: Advertise) -> ValidAd:
    """Check an ad, and return it with the number of jobs that it allows. Raise Rejected if a value, an expression or a limit is malformed."""
    if fault := said.element.fault():
        raise Rejected("AD_INVALID", fault, "correct what describes the element")
    check_requirements(said.requirements)
    ad_text(said.attributes, said.expressions, said.requirements, said.rank)
    return ValidAd(said, allowance(said.element, said.attributes))


async def _store(tx: Transaction, heard: Iterable[HeardAd]) -> dict[CeId, AdAllowance]:
    """Store ads. For each element whose newest ad is among them, return how many jobs may be matched until the next one."""
    # The last one of each element is its newest, as in the database.
    newest = {each.valid.ad.element.ce_id: each for each in sorted(heard, key=attrgetter("age"))}
    for place in await ad.beyond(tx, [each.valid.ad for each in newest.values()]):
        _refuse(tx, newest.pop(place).delivery, _beyond(place.site))
    told = await ad.store(tx, [each.valid.ad for each in newest.values()])
    return {place: _allowed(newest[place].valid) for place in told}


def _beyond(site: str) -> Rejected:
    return Rejected(
        "TOO_MANY_ELEMENTS",
        f"the site {site!r} may have {ad.SITE_ELEMENTS:,} elements, also of the last {ad.KNOWN_DAYS} days,"
        f" and {ad.SITE_BYTES // 2**20} MiB of ads",
        "advertise fewer or shorter ones, or have an operator forget old ones: `wms site forget`",
    )


def _allowed(heard: ValidAd) -> AdAllowance:
    ad, element = heard.ad, heard.ad.element
    return AdAllowance(
        heard.allowed,
        ad.lifetime_seconds,
        observed_at=ad.observed_at or ad.advertised_at,
        current=element.current_jobs,
        sees_jobs=element.dispatcher == "local",
    )


class AdSync:
    """Copies the stored ads of computing elements into a matcher's queue index, and removes expired ones."""

    def __init__(self, db: Database, index: QueueIndex) -> None:
        self._db = db
        self._index = index
        self._told: dict[CeId, str] = {}

    async def refresh(self) -> None:
        """Read the stored ads, and set in the index those that changed or expired since the last call."""
        async with self._db.transaction() as tx:
            there = {each.ce_id: ad_of(each) for each in await ad.fresh(tx)}
        for place in self._told.keys() | there.keys():
            text = there.get(place, "")
            if text != self._told.get(place, ""):
                self._advertise(place, text)
                await asyncio.sleep(0)
        self._told = there

    def _advertise(self, place: CeId, text: str) -> None:
        try:
            self._index.advertise(*place, text)
        except Exception:
            log.exception("an ad is left out", site=place.site, ce=place.ce)


class AdExpiry:
    """Deletes expired ads from the database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def sweep(self) -> None:
        """Delete all ads whose lifetime has passed."""
        async with self._db.transaction() as tx:
            forgotten = await ad.forget_expired(tx)
        if forgotten:
            log.info("ads expired", elements=forgotten)
