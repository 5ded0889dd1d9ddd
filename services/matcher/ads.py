"""Handles `wms.resource.ads`: stores ads of computing elements and updates the queue index. The sender's token must cover the site of an ad.

One matcher receives an ad and stores it; all matchers read the stored ads.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec
import structlog

from wms.auth.policy import may_advertise
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import ad, limit
from wms.db.database import Database, Transaction
from wms.db.limit import AdAllowance
from wms.errors import Rejected
from wms.ids import CeId
from wms.matching.ad_limits import allowance, check_requirements
from wms.matching.ads import advertised as ad_text
from wms.messages.ads import Ad, Advertise, Withdraw
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


async def handle(tx: Transaction, batch: list[Delivery[Ad]]) -> None:
    """Store the ads in a batch of messages, and delete the ads that messages withdraw, in the given transaction.

    The counters of jobs matched since an element's last ad are reset. Faulty ads, and those of sites that the sender's token does not cover, are
    logged and ignored.
    """
    heard: list[ValidAd] = []
    counted: dict[CeId, AdAllowance] = {}
    gone: set[CeId] = set()
    now = await tx.now()
    for delivery in batch:
        if _refused(tx, delivery, now):
            continue
        match delivery.message:
            case Advertise() as advertised if _may(delivery.principal, advertised.element.site):
                heard += _heard(advertised)
            case Withdraw() as withdrawn if _may(delivery.principal, withdrawn.site):
                counted |= (stored := await _store(tx, heard))
                heard = []
                gone = gone - stored.keys() | await ad.withdraw(tx, [withdrawn])
            case _:
                log.warning("ad refused: another site's token")
    counted |= (stored := await _store(tx, heard))
    if counted:
        await limit.advertise(tx, counted)
    await limit.end_ads(tx, gone - stored.keys())


def _refused(tx: Transaction, delivery: Delivery[Ad], now: datetime) -> bool:
    """Return whether an ad is from the future, and log it if so. Such an ad would remain the newest even after later ones."""
    said, principal = delivery.message, delivery.principal
    ahead = (said.advertised_at - now).total_seconds()
    if principal is None or ahead <= AHEAD_SECONDS:
        return False
    site, ce = said.element.ce_id if isinstance(said, Advertise) else CeId(said.site, said.ce)
    log.warning("ad refused: of the future", site=site, ce=ce, seconds=ahead)
    answer = Refused(
        reply_to=f"{site[:99]}/{ce[:99]}",
        client="",
        code="AD_OF_THE_FUTURE",
        message=f"the ad says that it was made {ahead:,.0f} s after now, and at most {AHEAD_SECONDS:,} are allowed for clocks",
        remedy="set the clock of the machine that advertises",
    )
    tx.send(inbox(principal.owner), "", answer)
    return True


def _heard(advertised: Advertise) -> Iterable[ValidAd]:
    """Yield the valid ad of a message; none if it is faulty."""
    element = advertised.element
    fault = element.fault()
    if not fault:
        try:
            return [read(advertised)]
        except Rejected as error:
            fault = str(error)
    log.warning("ad refused", site=element.site, ce=element.ce, fault=fault)
    return []


def read(said: Advertise) -> ValidAd:
    """Check the expressions and limits of an ad, and return the ad with the number of jobs that it allows.

    Raise Rejected if an expression or a limit is malformed.
    """
    check_requirements(said.requirements)
    ad_text(said.attributes, said.expressions, said.requirements, said.rank)
    return ValidAd(said, allowance(said.element, said.attributes))


async def _store(tx: Transaction, heard: Iterable[ValidAd]) -> dict[CeId, AdAllowance]:
    """Store ads. For each element whose newest ad is among them, return how many jobs may be matched until the next one."""
    # The last one of each element is its newest, as in the database.
    newest = {each.ad.element.ce_id: each for each in sorted(heard, key=_age)}
    told = await ad.store(tx, [each.ad for each in newest.values()])
    return {place: _allowed(newest[place]) for place in told}


def _allowed(heard: ValidAd) -> AdAllowance:
    ad, element = heard.ad, heard.ad.element
    return AdAllowance(
        heard.allowed,
        ad.lifetime_seconds,
        observed_at=ad.observed_at or ad.advertised_at,
        current=element.current_jobs,
        sees_jobs=element.dispatcher == "local",
    )


def _age(heard: ValidAd) -> float:
    return heard.ad.advertised_at.timestamp()


def _may(principal: Principal | None, site: str) -> bool:
    return principal is not None and may_advertise(principal, site)


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
