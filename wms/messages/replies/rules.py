"""What administrators set: the shares of groups, and limits."""

from typing import Annotated

import msgspec

from wms.bounds import Client, LongText, Measure, MessageId, Seconds, StoredName, Total, Word
from wms.messages.limits import Limit
from wms.messages.replies.bounds import Many, Position


class ShareLine(msgspec.Struct, frozen=True, kw_only=True):
    """A group's share and how it stands."""

    vo: StoredName
    owner_group: StoredName
    job_share: Measure
    job_sharing: bool
    background: bool
    source: Word
    """`set` at run time, of the `file`, or the `default`."""
    said_by: StoredName = ""
    owners: Total = 0
    """The number of owners with waiting jobs."""
    waiting_jobs: Total = 0
    running_jobs: Total = 0
    """The number of jobs that pilots hold."""
    private_pilots: bool = False
    used_hours: Seconds = 0.0
    """Of processors, in ended attempts, halved every half-life; 0 where usage does not count."""
    effective_share: Measure | None = None
    """The share as it counts by that usage; of an older job manager, none."""


class Shares(msgspec.Struct, frozen=True, kw_only=True, tag="shares"):
    """Answers ListShares."""

    query_id: MessageId
    client: Client
    shares: Annotated[tuple[ShareLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""


class LimitLine(msgspec.Struct, frozen=True, kw_only=True):
    """A limit and who said it."""

    limit: Limit
    lifted: bool = False
    """The file says it, and at run time it was said not to hold."""
    source: Word
    """`set` at run time, or of the `file`."""
    said_by: StoredName = ""


class CountLine(msgspec.Struct, frozen=True, kw_only=True):
    """How far something is that a limit counts."""

    site: StoredName
    ce: StoredName
    attribute: Word
    value: LongText
    running: Total


class LimitList(msgspec.Struct, frozen=True, kw_only=True, tag="limit-list"):
    """Answers ListLimits. Operators are told the counts of all owners, and an owner its own counts alone."""

    query_id: MessageId
    client: Client
    limits: Annotated[tuple[LimitLine, ...], Many]
    counts: Annotated[tuple[CountLine, ...], Many]
    after: Position | None = None
    """Where the next page begins; None at the end."""
