"""Agreements in the database. The resource broker offers to reserve CPUs of a site for a job; the site's agreement service decides.

All times are by the database's clock.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import msgspec

from wms.agreement.agreement import Agreement, AgreementMark, overdue
from wms.agreement.quota import ReservedAmount
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import ALIVE, AgreementState, agreement_after
from wms.agreement.template import AgreementTemplate
from wms.agreement.terms import AgreementTerms
from wms.auth.policy import Scope
from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import AgreementId, CeId, JobId
from wms.messages.agreements import DECISIONS_TOPIC, AgreementDecided

SQL = load(__file__)


class ReservableElement(msgspec.Struct, frozen=True):
    """A computing element on which CPUs may be reserved: the number of CPUs, and the bounds within which its site takes offers."""

    cpus: int
    template: AgreementTemplate


class HeldReservation(msgspec.Struct, frozen=True):
    """A reservation that a batch system may still hold: its name in the batch system, and its agreement."""

    agreement_id: AgreementId
    reservation: str


# --- offers and states ----------------------------------------------------------------------------


async def offer(tx: Transaction, offers: Sequence[AgreementTerms]) -> set[AgreementId]:
    """Store offers of the resource broker in state Requested.

    Return the ids of the new ones; an offer whose id is stored already changes nothing.
    """
    rows = [
        (t.agreement_id, t.job_id, t.vo, t.owner, t.group, t.site, t.ce, t.cpus, t.duration_seconds, t.earliest_start,
         t.latest_start, t.flexible, t.expires_in_seconds)
        for t in offers
    ]  # fmt: skip
    return {row["agreement_id"] for row in await tx.fetch(SQL["offer"], *dense(rows, 13))}


async def of_others(tx: Transaction, offers: Sequence[AgreementTerms]) -> set[AgreementId]:
    """Return the ids of offers whose job does not exist, or belongs to another owner, group or VO than the offer names."""
    rows = [(each.agreement_id, each.job_id, each.vo, each.owner, each.group) for each in offers]
    return {row["agreement_id"] for row in await tx.fetch(SQL["of_others"], *dense(rows, 5))}


async def lock(tx: Transaction, ids: Collection[str]) -> dict[AgreementId, Agreement]:
    """Lock the rows of these agreements until the transaction ends, and return them by id. Unknown ids are absent."""
    return _by_id(await tx.fetch(SQL["lock"], sorted(ids)))


async def read(tx: Transaction, ids: Collection[str]) -> dict[AgreementId, Agreement]:
    """Return the agreements with these ids, by id, without locking them. Ids that are not stored are absent."""
    return _by_id(await tx.fetch(SQL["read"], sorted(ids)))


async def move(tx: Transaction, marks: Sequence[AgreementMark]) -> list[Agreement]:
    """Apply events to agreements as far as the state table allows, and send each decision to the resource broker.

    Return the agreements that changed state, as they are afterwards. A mark is an event with the values to store; marks of unknown
    agreements are ignored.
    """
    if not marks:
        return []
    there = await lock(tx, [each.agreement_id for each in marks])
    moved = [
        (mark.agreement_id, to, mark.code, mark.text, mark.start_at, mark.ends_at, mark.reservation, mark.expires_at)
        for mark in marks
        if (found := there.get(mark.agreement_id)) and (to := agreement_after(found.state, mark.event))
    ]  # fmt: skip
    rows = await tx.fetch(SQL["move"], *dense(moved, 8))
    changed = [_agreement(row) for row in rows]
    tell(tx, changed)
    return changed


def tell(tx: Transaction, agreements: Sequence[Agreement]) -> None:
    """Send each agreement that is no longer Requested to the resource broker, as a message of this transaction."""
    for each in agreements:
        if each.state is not AgreementState.REQUESTED:
            tx.send(DECISIONS_TOPIC, str(each.job_id), _decided(each))


def _decided(agreement: Agreement) -> AgreementDecided:
    is_temporary = agreement.state is AgreementState.TEMPORARY
    return AgreementDecided(
        agreement_id=agreement.agreement_id,
        job_id=agreement.job_id,
        site=agreement.site,
        ce=agreement.ce,
        state=agreement.state,
        start_at=agreement.start_at,
        ends_at=agreement.ends_at,
        reservation=agreement.reservation,
        expires_at=agreement.expires_at if is_temporary else None,
        code=AgreementReason(agreement.code),
        text=agreement.text,
    )


# --- decisions ------------------------------------------------------------------------------------


async def tell_elements(
    tx: Transaction, site: str, elements: Mapping[str, ReservableElement], seconds: float
) -> None:
    """Store that a site decides on offers for these computing elements, given by name, during the next `seconds` seconds."""
    rows = [(ce, each.cpus, msgspec.json.encode(each.template).decode()) for ce, each in elements.items()]
    await tx.execute(SQL["tell"], site, *dense(rows, 3), seconds)


async def withdraw_element(tx: Transaction, place: CeId) -> None:
    """Store that a site decides on no offers for this computing element, until it tells again that it does."""
    await tx.execute(SQL["withdraw"], *place)


async def reservable(tx: Transaction) -> dict[CeId, ReservableElement]:
    """Return the computing elements of all sites that take offers now, each with its CPUs and the bounds of offers."""
    return {
        CeId(row["site"], row["ce"]): ReservableElement(
            row["cpus"], msgspec.json.decode(row["template"], type=AgreementTemplate)
        )
        for row in await tx.fetch(SQL["reservable"])
    }


async def take_turn(tx: Transaction, place: CeId, holder: str, seconds: float) -> bool:
    """Take the exclusive right to decide on the offers for one computing element, or prolong it.

    `holder` is the service instance that asks; the right lasts `seconds` seconds. Return False if another holder has it, or the element
    takes no offers.
    """
    return await tx.fetchval(SQL["take_turn"], *place, holder, seconds) is not None


async def keep_turn(tx: Transaction, place: CeId, holder: str) -> bool:
    """Return whether `holder` still has the right to decide for the computing element.

    If so, nobody else gets it before the transaction ends.
    """
    return await tx.fetchval(SQL["keep_turn"], *place, holder) is not None


async def requested(tx: Transaction, place: CeId, limit: int) -> list[Agreement]:
    """Return up to `limit` offers for a computing element that are still undecided, the oldest first.

    Owners take turns: the oldest offer of each owner comes before the second offer of any.
    """
    return [_agreement(row) for row in await tx.fetch(SQL["requested"], *place, limit)]


async def granted(tx: Transaction, place: CeId) -> list[Agreement]:
    """Return the agreements of a computing element that are Temporary or Confirmed: those that hold CPUs."""
    return [_agreement(row) for row in await tx.fetch(SQL["granted"], *place)]


async def askers(tx: Transaction, place: CeId, seconds: float, limit: int) -> list[str]:
    """Return up to `limit` owners who have a living agreement at a computing element, or made an offer within the last `seconds` seconds."""
    return [row["owner"] for row in await tx.fetch(SQL["askers"], *place, seconds, limit)]


async def reserved(tx: Transaction, site: str) -> dict[str, ReservedAmount]:
    """Return the sums of the Temporary and Confirmed agreements of a site, by VO: their number, CPUs and CPU seconds."""
    found: dict[str, ReservedAmount] = {}
    for row in await tx.fetch(SQL["reserved"], site):
        count = row["agreements"]
        theirs = ReservedAmount(count, row["cpus"], row["cpu_seconds"], {row["owner"]: count})
        found[row["vo"]] = found.get(row["vo"], ReservedAmount()).together(theirs)
    return found


async def intend(tx: Transaction, names: Mapping[AgreementId, str], *, is_held: bool = True) -> None:
    """Store that decisions on these Requested agreements begin, with the name of each reservation; add 1 to their number of attempts.

    With `is_held`, also store that the batch system may hold the reservations from now on, so that they are released later.
    """
    await tx.execute(SQL["intend"], list(names), list(names.values()), is_held)


async def hand_over(tx: Transaction, jobs: Mapping[AgreementId, JobId]) -> None:
    """Assign each agreement to another job, which runs in its reservation. Pairs of different owner, group or VO are ignored."""
    await tx.execute(SQL["hand_over"], list(jobs), list(jobs.values()))


async def in_use(tx: Transaction, ids: Collection[str]) -> list[AgreementId]:
    """Return the ids of those of these agreements whose jobs have started in their reservations."""
    return [AgreementId(row["agreement_id"]) for row in await tx.fetch(SQL["in_use"], sorted(ids))]


# --- ends -----------------------------------------------------------------------------------------


async def end_overdue(tx: Transaction, site: str, grace: timedelta, limit: int) -> list[Agreement]:
    """End up to `limit` agreements of a site whose time or job is over, and tell the resource broker. Return those that ended.

    A confirmed agreement also ends if nobody used it within `grace` after its start.
    """
    now = await tx.now()
    marks = []
    for row in await tx.fetch(SQL["overdue"], site, grace.total_seconds(), limit):
        values = dict(row)
        job_is_over = values.pop("job_is_over")
        marks.append(overdue(_agreement(values), now, grace, job_is_over=job_is_over))
    return await move(tx, [each for each in marks if each is not None])


async def use(tx: Transaction, site: str, in_use: Collection[str]) -> int:
    """Store that confirmed reservations of a site are in use. Return for how many of them that was new.

    A reservation is in use if `in_use` contains its name, since the batch system runs something in it, or if a pilot holds its job.
    """
    return await tx.execute(SQL["use"], site, sorted(in_use))


async def releasable(tx: Transaction, place: CeId, limit: int) -> list[HeldReservation]:
    """Return up to `limit` reservations of a computing element whose agreements are over, though its batch system may still hold them."""
    return [HeldReservation(*row) for row in await tx.fetch(SQL["releasable"], *place, limit)]


async def released(tx: Transaction, ids: Collection[AgreementId]) -> None:
    """Store that the batch system no longer holds reservations for these agreements. Agreements that are not over stay unchanged."""
    await tx.execute(SQL["released"], sorted(ids))


async def living(tx: Transaction, place: CeId) -> dict[str, tuple[AgreementId, AgreementState]]:
    """Return the agreements of a computing element that are not over and may hold a reservation there.

    The key is the name of the reservation in the batch system; the value is the agreement's id and state.
    """
    rows = await tx.fetch(SQL["living"], *place)
    return {row["reservation"]: (row["agreement_id"], AgreementState(row["state"])) for row in rows}


async def forget(tx: Transaction, seconds: float, limit: int) -> int:
    """Delete up to `limit` agreements that ended over `seconds` seconds ago and hold no reservation; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], seconds, limit)


class SoughtAgreements(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions by which agreements are listed. An empty value, or None, sets no condition."""

    states: Collection[AgreementState] = ALIVE
    job_id: JobId | None = None
    owner: str = ""
    site: str = ""
    ce: str = ""
    after: tuple[datetime, str] | None = None
    """Creation time and id of the last agreement on the page before; None for the first page."""


async def listed(tx: Transaction, scope: Scope, sought: SoughtAgreements, limit: int) -> list[Agreement]:
    """Return up to `limit` agreements that the user with this scope may see and that meet the conditions, newest first."""
    rows = await tx.fetch(
        SQL["list"],
        *(scope.owner, scope.group, scope.vo),
        sorted(sought.states),
        sought.job_id,
        *(each or None for each in (sought.owner, sought.site, sought.ce)),
        *(sought.after or (None, None)),
        limit,
    )
    return [_agreement(row) for row in rows]


def _by_id(rows: Sequence[asyncpg.Record]) -> dict[AgreementId, Agreement]:
    return {row["agreement_id"]: _agreement(row) for row in rows}


def _agreement(row: Mapping[str, Any] | asyncpg.Record) -> Agreement:
    return Agreement(**{**row, "state": AgreementState(row["state"])})
