"""Answers about what administrators set: the fair shares of groups, and limits on jobs."""

from typing import Annotated

import msgspec

from wms.bounds import Client, LongText, Measure, MessageId, Seconds, StoredName, Total, Word
from wms.messages.limits import Limit
from wms.messages.replies.bounds import Many, Position


class ShareLine(msgspec.Struct, frozen=True, kw_only=True):
    """The fair share of one group, with the group's present jobs and usage."""

    vo: StoredName
    owner_group: StoredName
    job_share: Measure
    job_sharing: bool
    background: bool
    source: Word
    """Where the share comes from: `set` at run time, the `file`, or the `default`."""
    said_by: StoredName = ""
    owners: Total = 0
    """The number of users of the group that have waiting jobs."""
    waiting_jobs: Total = 0
    running_jobs: Total = 0
    """The number of the group's jobs that pilots hold."""
    private_pilots: bool = False
    used_hours: Seconds = 0.0
    """Processor hours of the group's ended attempts; each attempt counts half after every half-life. 0 if usage is not recorded."""
    effective_share: Measure | None = None
    """The share after past usage has raised or lowered it. None if the job manager that answers is older than this field."""


class Shares(msgspec.Struct, frozen=True, kw_only=True, tag="shares"):
    """Answers ListShares: a page of groups."""

    query_id: MessageId
    client: Client
    shares: Annotated[tuple[ShareLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""


class LimitLine(msgspec.Struct, frozen=True, kw_only=True):
    """One limit on jobs, and where it comes from."""

    limit: Limit
    lifted: bool = False
    """Whether an operator switched the limit of the configuration file off at run time."""
    source: Word
    """Where the limit comes from: `set` at run time, or the `file`."""
    said_by: StoredName = ""


class CountLine(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs with one value of an attribute pilots hold at one place, as limits count them."""

    site: StoredName
    ce: StoredName
    attribute: Word
    value: LongText
    running: Total


class LimitList(msgspec.Struct, frozen=True, kw_only=True, tag="limit-list"):
    """Answers ListLimits: a page of limits, and the counts. Operators see the counts of all owners, other users only their own."""

    query_id: MessageId
    client: Client
    limits: Annotated[tuple[LimitLine, ...], Many]
    counts: Annotated[tuple[CountLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""
