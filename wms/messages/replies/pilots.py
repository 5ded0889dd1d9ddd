"""Answers about pilots, and about orders for private pilots."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, JobNumber, LongText, MessageId, StoredName, Total, Word
from wms.messages.replies.bounds import Many, Position


class PilotLine(msgspec.Struct, frozen=True, kw_only=True):
    """One pilot as an entry of a list."""

    pilot_id: StoredName
    site: StoredName
    ce: StoredName
    vo: StoredName
    state: Word
    slots: Total
    busy: Total
    jobs_done: Total
    submitted_at: datetime
    seen_at: datetime | None
    reason: LongText
    owner_group: StoredName = ""
    """The group whose jobs a private pilot takes. Empty for a pilot that takes those of any group of its VO."""
    owner: StoredName = ""
    """The user whose jobs a private pilot takes. Empty if it takes those of the whole group."""
    link: Word = "kafka"
    """How the pilot reaches the services: `kafka`, or `gateway` over HTTPS."""


class PilotOrderLine(msgspec.Struct, frozen=True, kw_only=True):
    """One order for private pilots as an entry of a list."""

    order_id: JobNumber
    vo: StoredName
    owner_group: StoredName
    owner: StoredName
    """The user who gave the order."""
    group_wide: bool
    site: StoredName
    ce: StoredName
    wanted: Total
    sent: Total
    """How many pilots were sent for the order. Those that ended before they ran are not counted."""
    alive: Total
    state: Word
    """The state of the order: open, fulfilled, expired or withdrawn."""
    ordered_at: datetime
    expires_at: datetime
    held: LongText = ""
    """Why no pilot could be sent for the order at the last try. Empty if one could."""


class PilotOrders(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-orders"):
    """Answers ListPilotOrders: a page of orders, the newest first."""

    query_id: MessageId
    client: Client
    orders: Annotated[tuple[PilotOrderLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""


class Pilots(msgspec.Struct, frozen=True, kw_only=True, tag="pilots"):
    """Answers ListPilots: a page of pilots."""

    query_id: MessageId
    client: Client
    pilots: Annotated[tuple[PilotLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""


class PilotDetail(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-detail"):
    """Answers ShowPilot: everything that is stored about one pilot."""

    query_id: MessageId
    client: Client
    pilot: PilotLine
    dispatcher: StoredName
    reference: LongText | None
    """The name by which the computing element knows the pilot; None if it has none yet."""
    started_at: datetime | None
    ended_at: datetime | None
    word: LongText | None
    """The last state of the pilot that its computing element reported; `word_at` is the time of this report."""
    word_at: datetime | None
    cause: LongText | None
    """Why the pilot ended, if it did not end by itself. Else None."""
    output: LongText | None
    """The end of what the pilot printed. None until it is fetched, some time after the pilot's end."""
    refused_orders: Total = 0
    """How many messages to the pilot it ignored, because no service had signed them. Above 0, somebody forges orders."""
    isolation: Word = ""
    """How the pilot isolates the payloads of its jobs: `account` (namespaces, under an account of its own), `namespaces`, `none` or `direct`. Empty if it never reported."""
