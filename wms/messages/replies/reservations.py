"""Answers about reservations: what is reserved for whose job, where and when, and why."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, Count, JobNumber, LongText, MessageId, Seconds, StoredName, Word
from wms.messages.queries import ReservationCursor
from wms.messages.replies.bounds import Many


class ReservationLine(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation, or an offer of one, as a list shows it."""

    agreement_id: StoredName
    job_id: JobNumber
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    site: StoredName
    ce: StoredName
    state: Word
    """Requested, Temporary, Confirmed, Denied, Cancelled, Expired, NoShow or Ended."""
    cpus: Count
    duration_seconds: Seconds
    earliest_start: datetime | None
    latest_start: datetime | None
    flexible: bool
    start_at: datetime | None
    """None: nothing was reserved."""
    ends_at: datetime | None
    reservation: StoredName
    """The name by which the batch system knows it; empty if it does not."""
    expires_at: datetime
    """When an offer without a decision, or an unconfirmed reservation, is over."""
    used_at: datetime | None
    """When it was first seen that a pilot uses it."""
    reason: Word
    reason_text: LongText
    created_at: datetime
    changed_at: datetime


class Reservations(msgspec.Struct, frozen=True, kw_only=True, tag="reservations"):
    """Answers ListReservations: a page."""

    query_id: MessageId
    client: Client
    lines: Annotated[tuple[ReservationLine, ...], Many]
    after: ReservationCursor | None = None
    """Where the next page begins; None: there is none."""
