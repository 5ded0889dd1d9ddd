"""Answers about task queues."""

from typing import Annotated

import msgspec

from wms.bounds import Client, Document, JobNumber, MessageId, StoredName, Total
from wms.messages.replies.bounds import Many, Position


class QueueLine(msgspec.Struct, frozen=True, kw_only=True):
    """One task queue with waiting jobs as an entry of a list. `waiting` is their number."""

    tq_id: JobNumber
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    cpu_segment: Total
    waiting: Total
    requirements: Document


class Queues(msgspec.Struct, frozen=True, kw_only=True, tag="queues"):
    """Answers ListQueues: a page of task queues, those with the most waiting jobs first."""

    query_id: MessageId
    client: Client
    queues: Annotated[tuple[QueueLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""
