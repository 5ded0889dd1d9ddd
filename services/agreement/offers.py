"""Handles the messages of `wms.agreement.offers`: stores offers, and confirms and cancels agreements of this site.

A message that arrives twice has the effect of one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import structlog

from wms.agreement.agreement import Agreement, AgreementMark
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementEvent, AgreementState
from wms.bus.delivery import Delivery
from wms.db import agreement
from wms.db.database import Transaction
from wms.messages.agreements import Cancel, Confirm, Reserve, ToSite

log = structlog.get_logger()

NOT_THEIRS = "there is no such job of this owner, group and VO"


class AgreementOffers:
    """Handles the messages of the resource broker to one site. Messages to other sites are ignored."""

    def __init__(self, site: str, elements: Mapping[str, Callable[[], None]]) -> None:
        """Build a handler for a site; `elements` maps each computing element that this service decides for to a function.

        The function is called after new offers for the element were committed.
        """
        self._site = site
        self._elements = elements
        self.taken = 0

    async def handle(self, tx: Transaction, batch: list[Delivery[ToSite]]) -> None:
        """Handle a batch of messages in the given transaction: first the offers, then confirmations, then cancellations.

        Offers are denied if the element is unknown, or if the job is not of the offer's owner, group and VO. A repeated offer
        and a confirmation that is too late are answered with the state of the agreement.
        """
        mine = [each.message for each in batch if each.message.site == self._site]
        await self._reserve(tx, [each for each in mine if isinstance(each, Reserve)])
        await self._confirm(tx, [each for each in mine if isinstance(each, Confirm)])
        await self._cancel(tx, [each for each in mine if isinstance(each, Cancel)])
        self.taken += len(mine)

    async def _reserve(self, tx: Transaction, offers: Sequence[Reserve]) -> None:
        if not offers:
            return
        first = {each.agreement_id: each for each in reversed(offers)}
        new = await agreement.offer(tx, list(first.values()))
        stored = [each for each in first.values() if each.agreement_id in new]
        others = await agreement.of_others(tx, stored)
        await agreement.move(tx, [mark for each in stored if (mark := self._denied(each, others))])
        for ce in {each.ce for each in stored} & self._elements.keys():
            tx.on_commit(self._elements[ce])
        agreement.tell(tx, list((await agreement.read(tx, first.keys() - new)).values()))

    def _denied(self, offer: Reserve, others: Collection[str]) -> AgreementMark | None:
        """Return the denial of an offer for an unknown element, or of one whose id is in `others`; None for any other offer.

        `others` are the offers whose job does not exist, or is not of the offer's owner, group and VO.
        """
        code, text = AgreementReason.INVALID_OFFER, NOT_THEIRS
        if offer.ce not in self._elements:
            code, text = AgreementReason.NO_RESERVATIONS, f"no reservations are made on {offer.ce}"
        elif offer.agreement_id not in others:
            return None
        return AgreementMark(agreement_id=offer.agreement_id, event=AgreementEvent.DENY, code=code, text=text)

    async def _confirm(self, tx: Transaction, wanted: Sequence[Confirm]) -> None:
        there = await self._mine(tx, wanted)
        now = await tx.now()
        good = [each for each in there if _is_confirmable(each) and each.expires_at > now]
        await agreement.move(tx, [_confirmed(each) for each in good])
        agreement.tell(tx, [each for each in there if each not in good])

    async def _cancel(self, tx: Transaction, wanted: Sequence[Cancel]) -> None:
        said = {each.agreement_id: each for each in wanted}
        marks = [
            AgreementMark(
                agreement_id=each.agreement_id,
                event=AgreementEvent.CANCEL,
                code=said[each.agreement_id].code,
                text=said[each.agreement_id].text,
            )
            for each in await self._mine(tx, wanted)
        ]
        await agreement.move(tx, marks)

    async def _mine(self, tx: Transaction, wanted: Sequence[Confirm | Cancel]) -> list[Agreement]:
        """Lock the agreements that these messages name, and return those of this site. Unknown ones are logged and left out."""
        if not wanted:
            return []
        there = await agreement.lock(tx, {each.agreement_id for each in wanted})
        mine = [each for each in there.values() if each.site == self._site]
        if unknown := {each.agreement_id for each in wanted} - {each.agreement_id for each in mine}:
            log.warning("no such agreements", agreements=sorted(unknown)[:20])
        return mine


def _is_confirmable(found: Agreement) -> bool:
    return found.state is AgreementState.TEMPORARY


def _confirmed(found: Agreement) -> AgreementMark:
    return AgreementMark(
        agreement_id=found.agreement_id, event=AgreementEvent.CONFIRM, code=AgreementReason.CONFIRMED
    )
