"""Agreements on reservations: offered by the broker, decided by the service of their site, over by themselves. Times are the database's."""

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
    """What may be reserved of a computing element."""

    cpus: int
    template: AgreementTemplate


class HeldReservation(msgspec.Struct, frozen=True):
    """A reservation that a batch system may hold."""

    agreement_id: AgreementId
    ce: str
    reservation: str


# --- offers and states ----------------------------------------------------------------------------


async def offer(tx: Transaction, offers: Sequence[AgreementTerms]) -> set[AgreementId]:
    """Store offers as Requested; return the ids of those that are new."""
    rows = [
        (t.agreement_id, t.job_id, t.vo, t.owner, t.group, t.site, t.ce, t.cpus, t.duration_seconds, t.earliest_start,
         t.latest_start, t.flexible, t.expires_in_seconds)
        for t in offers
    ]  # fmt: skip
    return {row["agreement_id"] for row in await tx.fetch(SQL["offer"], *dense(rows, 13))}


async def of_others(tx: Transaction, offers: Sequence[AgreementTerms]) -> set[AgreementId]:
    """Return the ids of offers for jobs that are not of the offers' owner, group and VO, or do not exist."""
    rows = [(each.agreement_id, each.job_id, each.vo, each.owner, each.group) for each in offers]
    return {row["agreement_id"] for row in await tx.fetch(SQL["of_others"], *dense(rows, 5))}


async def lock(tx: Transaction, ids: Collection[str]) -> dict[AgreementId, Agreement]:
    """Lock agreements and return them by their ids."""
    return _by_id(await tx.fetch(SQL["lock"], sorted(ids)))


async def read(tx: Transaction, ids: Collection[str]) -> dict[AgreementId, Agreement]:
    """Return agreements by their ids; those that no site has heard of are left out."""
    return _by_id(await tx.fetch(SQL["read"], sorted(ids)))


async def move(tx: Transaction, marks: Sequence[AgreementMark]) -> list[Agreement]:
    """Apply events that the state table allows, tell the broker, and return the agreements that moved, as they are then."""
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
    """Send the broker the states of agreements that are decided."""
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
    """Say that the site decides on offers for these elements, by their names, for the next `seconds` seconds."""
    rows = [(ce, each.cpus, msgspec.json.encode(each.template).decode()) for ce, each in elements.items()]
    await tx.execute(SQL["tell"], site, *dense(rows, 3), seconds)


async def reservable(tx: Transaction) -> dict[CeId, ReservableElement]:
    """Return the elements on which reservations are made, with their CPUs and the bounds of offers."""
    return {
        CeId(row["site"], row["ce"]): ReservableElement(
            row["cpus"], msgspec.json.decode(row["template"], type=AgreementTemplate)
        )
        for row in await tx.fetch(SQL["reservable"])
    }


async def take_turn(tx: Transaction, place: CeId, holder: str, seconds: float) -> bool:
    """Take or prolong the turn to decide for an element; return False while another service has it."""
    return await tx.fetchval(SQL["take_turn"], *place, holder, seconds) is not None


async def keep_turn(tx: Transaction, place: CeId, holder: str) -> bool:
    """Return whether the turn is still the holder's; then it stays so until the transaction ends."""
    return await tx.fetchval(SQL["keep_turn"], *place, holder) is not None


async def requested(tx: Transaction, place: CeId, limit: int) -> list[Agreement]:
    """Return up to `limit` undecided offers for an element, the oldest first."""
    return [_agreement(row) for row in await tx.fetch(SQL["requested"], *place, limit)]


async def granted(tx: Transaction, place: CeId) -> list[Agreement]:
    """Return the temporary and confirmed agreements of an element."""
    return [_agreement(row) for row in await tx.fetch(SQL["granted"], *place)]


async def reserved(tx: Transaction, site: str) -> dict[str, ReservedAmount]:
    """Return what is reserved at a site, by VO."""
    return {
        row["vo"]: ReservedAmount(row["agreements"], row["cpus"], row["cpu_seconds"])
        for row in await tx.fetch(SQL["reserved"], site)
    }


async def intend(tx: Transaction, names: Mapping[AgreementId, str], *, is_held: bool = True) -> None:
    """Store that decisions begin, and if `is_held` that a batch system is about to be asked for reservations of these names."""
    await tx.execute(SQL["intend"], list(names), list(names.values()), is_held)


async def hand_over(tx: Transaction, jobs: Mapping[AgreementId, JobId]) -> None:
    """Give agreements to other jobs of the same owner: to those that run in them."""
    await tx.execute(SQL["hand_over"], list(jobs), list(jobs.values()))


# --- ends -----------------------------------------------------------------------------------------


async def end_overdue(tx: Transaction, site: str, grace: timedelta, limit: int) -> list[Agreement]:
    """End up to `limit` agreements of a site whose time is over, and return them."""
    now = await tx.now()
    marks = []
    for row in await tx.fetch(SQL["overdue"], site, grace.total_seconds(), limit):
        values = dict(row)
        job_is_over = values.pop("job_is_over")
        marks.append(overdue(_agreement(values), now, grace, job_is_over=job_is_over))
    return await move(tx, [each for each in marks if each is not None])


async def use(tx: Transaction, site: str, in_use: Collection[str]) -> int:
    """Note which confirmed reservations are used, `in_use` by their names in the batch system; return how many are new."""
    return await tx.execute(SQL["use"], site, sorted(in_use))


async def releasable(tx: Transaction, site: str, limit: int) -> list[HeldReservation]:
    """Return what batch systems may still hold for agreements of a site that are over."""
    return [HeldReservation(*row) for row in await tx.fetch(SQL["releasable"], site, limit)]


async def released(tx: Transaction, ids: Collection[AgreementId]) -> None:
    """Store that the batch system holds nothing more for agreements that are over."""
    await tx.execute(SQL["released"], sorted(ids))


async def living(tx: Transaction, place: CeId) -> dict[str, tuple[AgreementId, AgreementState]]:
    """Return the living agreements of an element, by the names of the reservations that its batch system may hold for them."""
    rows = await tx.fetch(SQL["living"], *place)
    return {row["reservation"]: (row["agreement_id"], AgreementState(row["state"])) for row in rows}


async def forget(tx: Transaction, seconds: float, limit: int) -> int:
    """Delete up to `limit` agreements that were over `seconds` seconds ago; return how many."""
    return await tx.execute(SQL["forget"], seconds, limit)


class SoughtAgreements(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on agreements; empty ones stand for all."""

    states: Collection[AgreementState] = ALIVE
    job_id: JobId | None = None
    owner: str = ""
    site: str = ""
    ce: str = ""
    after: tuple[datetime, str] | None = None
    """Creation time and id of the last agreement of the page before."""


async def listed(tx: Transaction, scope: Scope, sought: SoughtAgreements, limit: int) -> list[Agreement]:
    """Return up to `limit` agreements of a scope that meet the conditions, the newest first."""
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
