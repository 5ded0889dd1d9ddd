"""Routes of the audit trail, which has all orders and refusals, and of revocations of tokens, subjects and pilots."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from services.gateway.job_routes import PageSize
from services.gateway.operation import NoParameters
from services.gateway.route import Requester, Route
from services.gateway.site_routes import Page, paged
from wms.bounds import GivenName, JobNumber, Name, Reason, Word
from wms.errors import Rejected
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies


class TrailPage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of the audit trail, the newest entries first. An entry must meet every condition that is given."""

    owner: Name = ""
    action: Word = ""
    """The kind of order, such as `kill`, `set-share` or `revoke`; empty: all."""
    site: Name = ""
    job: JobNumber | None = None
    """Only orders that name this job by its id; None: all."""
    refused: bool = False
    """Whether to list only orders that were refused."""
    since: datetime | None = None
    """Only orders given at or after this time, which must have a zone; None: all."""
    before: JobNumber | None = None
    """Only entries with smaller numbers. For the next page give `before` of the previous answer."""
    limit: PageSize = 100


class RevokedBearer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that names what is revoked: a token by its id (`jti`), an owner as jobs name it, or a pilot by its id."""

    kind: Literal["token", "subject", "pilot"]
    value: GivenName
    reason: Reason = ""


class BearerToRevoke(RevokedBearer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a revocation: what all services are to refuse, for how long, and the reason."""

    for_seconds: Annotated[float, msgspec.Meta(ge=1, le=316_224_000)] | None = None
    """Seconds until the revocation ends. None: a subject is revoked until that is lifted, tokens and pilots for as long as a token may live."""


def _list_trail(sender: Requester, given: TrailPage) -> asked.ListAuditTrail:
    if given.since is not None and given.since.tzinfo is None:
        raise Rejected("BAD_PARAMETER", "the time in `since` has no zone", "write 2026-01-31T12:00:00Z")
    conditions = msgspec.structs.asdict(given)
    return asked.ListAuditTrail(
        query_id=sender.id, client=sender.client, job_id=conditions.pop("job"), **conditions
    )


def _revoke(sender: Requester, _: NoParameters, body: RevokedBearer) -> ordered.Revoke:
    return ordered.Revoke(
        command_id=CommandId(sender.id),
        client=sender.client,
        lift=not isinstance(body, BearerToRevoke),
        **msgspec.structs.asdict(body),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/audit-trail",
        summary="A page of the orders and refusals that you may see, the newest first",
        parameters=TrailPage,
        message=_list_trail,
        answer=replies.AuditTrail,
    ),
    Route(
        method="GET",
        path="/revocations",
        summary="The revocations in force, the newest first (operators)",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListRevocations, sender, given),
        answer=replies.RevocationList,
    ),
    Route(
        method="POST",
        path="/revocations",
        summary="Have all services refuse a token, a subject or a pilot (operators; anyone the token of the request)",
        body=BearerToRevoke,
        message=_revoke,
        answer=replies.Ruled,
    ),
    Route(
        method="POST",
        path="/revocations/lift",
        summary="End a revocation (operators)",
        body=RevokedBearer,
        message=_revoke,
        answer=replies.Ruled,
    ),
)
