"""Answers about reservations of CPUs: for whose job, where and when, in which state and why."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, Count, JobNumber, LongText, MessageId, Seconds, StoredName, Word
from wms.messages.queries import ReservationCursor
from wms.messages.replies.bounds import Many


class ReservationLine(msgspec.Struct, frozen=True, kw_only=True):
    """One reservation, or one request for it, as an entry of a list."""

    agreement_id: StoredName
    job_id: JobNumber
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    site: StoredName
    ce: StoredName
    state: Word
    """The state of the reservation: Requested, Temporary, Confirmed, Denied, Cancelled, Expired, NoShow or Ended."""
    cpus: Count
    duration_seconds: Seconds
    earliest_start: datetime | None
    latest_start: datetime | None
    flexible: bool
    start_at: datetime | None
    """The start of the reservation. None if nothing was reserved."""
    ends_at: datetime | None
    reservation: StoredName
    """The batch system's name of the reservation; empty if the batch system does not know of it."""
    expires_at: datetime
    """When a request expires if the site has not decided, or a Temporary reservation if it is not confirmed."""
    used_at: datetime | None
    """When a pilot was first seen to use the reservation. None if none was."""
    reason: Word
    reason_text: LongText
    created_at: datetime
    changed_at: datetime


class Reservations(msgspec.Struct, frozen=True, kw_only=True, tag="reservations"):
    """Answers ListReservations: a page of reservations."""

    query_id: MessageId
    client: Client
    lines: Annotated[tuple[ReservationLine, ...], Many]
    after: ReservationCursor | None = None
    """The `after` of the query for the next page. None on the last page."""
