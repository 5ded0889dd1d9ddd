"""Ends agreements whose time is over, releases their reservations in batch systems, and compares both with each other.

What calls the batch system of one element is a loop of that element, so that a batch system without answers delays no other.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import structlog

from services.agreement.config import AgreementSettings
from services.agreement.port import BatchReservation, ServedElement
from wms import faultpoint
from wms.agreement.agreement import AgreementMark
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import GRANTED, AgreementEvent, AgreementState
from wms.db import agreement
from wms.db.agreement import ReservableElement
from wms.db.database import Database
from wms.errors import Unavailable
from wms.ids import AgreementId, CeId

log = structlog.get_logger()

AT_ONCE: Final = 500
RELEASED_AT_ONCE: Final = 50
TOLD_SECONDS: Final = 60.0
"""Seconds after its last announcement for which the resource broker sends offers to an element."""
DAY_SECONDS: Final = 86_400.0

Living = Mapping[str, tuple[AgreementId, AgreementState]]


class AgreementUpkeep:
    """Regular work on the agreements of one site: announces elements, ends agreements, and deletes old ones.

    Any number of instances may do it at the same time.
    """

    def __init__(self, db: Database, settings: AgreementSettings, elements: Sequence[ServedElement]) -> None:
        self._db = db
        self._settings = settings
        self._elements = {each.ce: each for each in elements}
        self.strays = 0
        """How many reservations this instance removed since its start because they had no living agreement."""

    async def tell(self) -> None:
        """Announce to the broker, for `TOLD_SECONDS`, that this site makes reservations on its elements, with their CPUs and templates.

        Elements whose batch system does not answer are left out. All are asked at the same time.
        """
        elements = self._elements.values()
        found = await asyncio.gather(*(_reservable(each) for each in elements))
        told = {each.ce: one for each, one in zip(elements, found, strict=True) if one}
        async with self._db.transaction() as tx:
            await agreement.tell_elements(tx, self._settings.site, told, TOLD_SECONDS)

    async def end(self) -> bool:
        """End up to 500 agreements of the site that are over by the database's clock; return whether there may be more.

        It also notes which confirmed reservations are in use, because their jobs are at a pilot.
        """
        grace = timedelta(seconds=self._settings.grace_seconds)
        async with self._db.transaction() as tx:
            await agreement.use(tx, self._settings.site, ())
            over = await agreement.end_overdue(tx, self._settings.site, grace, AT_ONCE)
        return len(over) == AT_ONCE

    async def forget(self) -> None:
        """Delete agreements from the database that ended more than `kept_days` ago; at most 5000 in one call."""
        async with self._db.transaction() as tx:
            await agreement.forget(tx, self._settings.kept_days * DAY_SECONDS, 10 * AT_ONCE)


async def _reservable(element: ServedElement) -> ReservableElement | None:
    """Return what is told to the broker of an element; None while its batch system does not answer."""
    try:
        return ReservableElement((await element.maker.look(())).cpus, element.rules.template)
    except Unavailable as error:
        log.warning("no reservations now", ce=element.ce, error=str(error))
        return None


class Reconciliation:
    """Keeps the batch system of one computing element as the agreements say: releases reservations, and compares both."""

    def __init__(self, db: Database, site: str, element: ServedElement, upkeep: AgreementUpkeep) -> None:
        self._db = db
        self._place = CeId(site, element.ce)
        self._element = element
        self._upkeep = upkeep
        self._missed: frozenset[str] = frozenset()
        """The names of reservations that the batch system did not list at the last comparison, though their agreements are granted."""

    async def release(self) -> bool:
        """Remove reservations of agreements that are over from the batch system, 50 at most; return whether there may be more.

        A reservation that cannot be removed now is tried again by the next call. For an element without a resource helper the
        call does nothing. Raise Unavailable if the batch system does not answer.
        """
        if self._element.helper is None:
            return False
        async with self._db.transaction() as tx:
            held = await agreement.releasable(tx, self._place, RELEASED_AT_ONCE)
        names = {each.reservation: each.agreement_id for each in held}
        gone = await self._element.helper.release(names) if names else ()
        if gone:
            faultpoint.reach("agreement.after_release")
            async with self._db.transaction() as tx:
                await agreement.released(tx, [names[each] for each in gone])
        return len(gone) == RELEASED_AT_ONCE

    async def compare(self) -> None:
        """Correct the differences between the agreements of the element and the reservations that its batch system lists.

        Reservations without a living agreement are removed. Agreements whose reservation was missing in two comparisons in a
        row are ended. It is stored which reservations are in use. For an element without a resource helper the call does
        nothing. Raise Unavailable if the batch system does not answer.
        """
        if self._element.helper is None:
            return
        # The list first: a reservation that is in it has had its agreement before.
        listed = {each.name: each for each in await self._element.helper.holdings()}
        async with self._db.transaction() as tx:
            living = await agreement.living(tx, self._place)
            await agreement.use(tx, self._place.site, [each.name for each in listed.values() if each.in_use])
            await agreement.move(tx, self._vanished(listed, living))
        if strays := listed.keys() - living.keys():
            log.warning("reservations without an agreement are removed", reservations=sorted(strays))
            self._upkeep.strays += len(await self._element.helper.release(strays))

    def _vanished(self, listed: Mapping[str, BatchReservation], living: Living) -> list[AgreementMark]:
        """Return events that end the granted agreements whose reservations were missing in two listings in a row.

        `living` are the agreements by reservation. One missing in a single listing may be just being made.
        """
        missing = {name for name, (_, state) in living.items() if state in GRANTED} - listed.keys()
        twice, self._missed = missing & self._missed, frozenset(missing)
        return [_vanished(*living[name]) for name in twice]


def _vanished(agreement_id: AgreementId, state: AgreementState) -> AgreementMark:
    """Return the event that ends an agreement in `state` whose reservation the batch system no longer lists.

    A batch system may drop a reservation that nobody uses.
    """
    log.warning("a reservation has vanished", agreement=agreement_id)
    event = AgreementEvent.END if state is AgreementState.CONFIRMED else AgreementEvent.CANCEL
    text = "the batch system lists its reservation no more"
    return AgreementMark(agreement_id=agreement_id, event=event, code=AgreementReason.VANISHED, text=text)
