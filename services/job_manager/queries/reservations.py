"""Answers about reservations of CPUs for jobs that the asker may see."""

from services.job_manager.queries.paging import fitting
from wms.agreement.agreement import Agreement
from wms.agreement.state import ALIVE
from wms.auth.policy import scope
from wms.auth.principal import Principal
from wms.db import agreement
from wms.db.agreement import SoughtAgreements
from wms.db.database import Transaction
from wms.ids import JobId
from wms.messages import queries as asked
from wms.messages import replies


async def list_reservations(
    tx: Transaction, principal: Principal, query: asked.ListReservations
) -> replies.Reservations:
    """Return a page of the reservations for jobs that the asker may see, the newest first."""
    found = await agreement.listed(tx, scope(principal, "see"), _sought(query), query.limit)
    lines = fitting(_line(each) for each in found)
    is_last = len(lines) == len(found) < query.limit
    after = (
        None
        if is_last or not lines
        else asked.ReservationCursor(lines[-1].created_at, lines[-1].agreement_id)
    )
    return replies.Reservations(query_id=query.query_id, client=query.client, lines=tuple(lines), after=after)


def _sought(query: asked.ListReservations) -> SoughtAgreements:
    return SoughtAgreements(
        states=query.states or ALIVE,
        job_id=None if query.job_id is None else JobId(query.job_id),
        owner=query.owner,
        site=query.site,
        ce=query.ce,
        after=(query.after.at, query.after.agreement_id) if query.after else None,
    )


def _line(each: Agreement) -> replies.ReservationLine:
    return replies.ReservationLine(
        agreement_id=each.agreement_id,
        job_id=each.job_id,
        owner=each.owner,
        owner_group=each.group,
        vo=each.vo,
        site=each.site,
        ce=each.ce,
        state=each.state,
        cpus=each.cpus,
        duration_seconds=each.duration_seconds,
        earliest_start=each.earliest_start,
        latest_start=each.latest_start,
        flexible=each.flexible,
        start_at=each.start_at,
        ends_at=each.ends_at,
        reservation=each.reservation,
        expires_at=each.expires_at,
        used_at=each.used_at,
        reason=each.code,
        reason_text=each.text,
        created_at=each.created_at,
        changed_at=each.changed_at,
    )
