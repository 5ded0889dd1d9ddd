"""Pilots, and orders for private ones."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, JobNumber, LongText, MessageId, StoredName, Total, Word
from wms.messages.replies.bounds import Many, Position


class PilotLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot as a list shows it."""

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
    """Of a private pilot whose jobs it takes; empty: any group's of its VO."""
    owner: StoredName = ""
    """And there whose; empty: all of the group's, which shares them."""


class PilotOrderLine(msgspec.Struct, frozen=True, kw_only=True):
    """An order for private pilots as a list shows it."""

    order_id: JobNumber
    vo: StoredName
    owner_group: StoredName
    owner: StoredName
    """Who ordered them."""
    group_wide: bool
    site: StoredName
    ce: StoredName
    wanted: Total
    sent: Total
    """Those that were sent, but for those that ended before they began to run."""
    alive: Total
    state: Word
    """open, fulfilled, expired or withdrawn."""
    ordered_at: datetime
    expires_at: datetime
    held: LongText = ""
    """Why no pilot could be sent at the last look."""


class PilotOrders(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-orders"):
    """Answers ListPilotOrders."""

    query_id: MessageId
    client: Client
    orders: Annotated[tuple[PilotOrderLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class Pilots(msgspec.Struct, frozen=True, kw_only=True, tag="pilots"):
    """Answers ListPilots."""

    query_id: MessageId
    client: Client
    pilots: Annotated[tuple[PilotLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class PilotDetail(msgspec.Struct, frozen=True, kw_only=True, tag="pilot-detail"):
    """Answers ShowPilot."""

    query_id: MessageId
    client: Client
    pilot: PilotLine
    dispatcher: StoredName
    reference: LongText | None
    """What its element calls it."""
    started_at: datetime | None
    ended_at: datetime | None
    word: LongText | None
    """What its element said of it last, and when."""
    word_at: datetime | None
    cause: LongText | None
    """What became of it, if it did not end by itself."""
    output: LongText | None
    """The end of what it printed; None as long as it was not fetched, which is some time after its end."""
    refused_orders: Total = 0
    """Messages to it that no service had signed: any says that somebody forges orders."""
