"""Answers about identities and revocations, and the audit trail: who gave which orders."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Client, LongText, MessageId, StoredName, Timestamp, Total, Word
from wms.messages.replies.bounds import Many, Position


class WhoYouAre(msgspec.Struct, frozen=True, kw_only=True, tag="who-you-are"):
    """Answers WhoAmI: the sender's identity and rights, as the verified token states them."""

    query_id: MessageId
    client: Client
    kind: Word
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    rights: Annotated[tuple[Word, ...], Many] = ()
    actions: Annotated[tuple[Word, ...], Many] | None = None
    """The only actions that the token permits, by its capabilities; None if it is not limited so."""
    shares_jobs: bool = False
    """Whether the group's members share their jobs."""
    token_id: StoredName
    expires_at: Timestamp


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the audit trail: an order, whether carried out or refused, with its answer."""

    number: Total
    at: datetime
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    token_id: StoredName
    command_id: StoredName
    action: Word
    subject: LongText
    """What the order is on, as JSON: the fields of the command without its ids."""
    site: StoredName
    code: Word
    """The error code if the order was refused; empty if it was carried out."""
    answer: LongText


class AuditTrail(msgspec.Struct, frozen=True, kw_only=True, tag="audit-trail"):
    """Answers ListAuditTrail: a page of the audit trail, the newest entry first."""

    query_id: MessageId
    client: Client
    lines: Annotated[tuple[AuditLine, ...], Many]
    before: Total | None = None
    """The `before` of the query for the next page. None on the last page."""


class RevocationLine(msgspec.Struct, frozen=True, kw_only=True):
    """A revocation of a token, subject or pilot, and who ordered it."""

    kind: Word
    value: StoredName
    revoked_at: datetime
    revoked_by: StoredName
    reason: LongText
    expires_at: datetime | None
    """When the revocation ends by itself. None if it lasts until it is lifted."""


class RevocationList(msgspec.Struct, frozen=True, kw_only=True, tag="revocation-list"):
    """Answers ListRevocations: a page of revocations."""

    query_id: MessageId
    client: Client
    revocations: Annotated[tuple[RevocationLine, ...], Many]
    after: Position | None = None
    """The `after` of the query for the next page. None on the last page."""
