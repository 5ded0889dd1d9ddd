"""Answers about access: who the sender is, and who ordered what."""

from services.job_manager.queries.paging import fitting
from wms.auth.policy import allowed, scope
from wms.auth.principal import Principal
from wms.db import audit_record
from wms.db.audit_record import SoughtAudit
from wms.db.database import Transaction
from wms.messages import queries as asked
from wms.messages import replies


async def who_am_i(tx: Transaction, principal: Principal, query: asked.WhoAmI) -> replies.WhoYouAre:  # noqa: ARG001 - as all answers
    """Return the identity and rights of the sender, as the verified token says."""
    return replies.WhoYouAre(
        query_id=query.query_id,
        client=query.client,
        kind=principal.kind,
        owner=principal.owner,
        owner_group=principal.group,
        vo=principal.vo,
        rights=tuple(sorted(principal.rights)),
        actions=None if principal.actions is None else tuple(sorted(principal.actions)),
        shares_jobs=principal.shares_jobs,
        token_id=principal.token_id,
        expires_at=principal.expires_at,
    )


async def list_audit_trail(
    tx: Transaction, principal: Principal, query: asked.ListAuditTrail
) -> replies.AuditTrail:
    """Return a page of the audit trail. Operators see all entries, a VO's administrators those of the VO, other users their own.

    Whoever sees no jobs - pilots, sites, tokens that are not for reading - sees no entries, also none of the same owner.
    """
    owner, vo = _reach(principal)
    sought = SoughtAudit(
        owner=query.owner,
        action=query.action,
        site=query.site,
        job_id=query.job_id,
        refused=query.refused,
        since=query.since,
        before=query.before,
    )
    rows = await audit_record.page(tx, sought, query.limit, owner=owner, vo=vo)
    lines = fitting(
        replies.AuditLine(number=row["audit_record_id"], **{name: row[name] for name in _COPIED})
        for row in rows
    )
    is_last = len(lines) == len(rows) < query.limit
    return replies.AuditTrail(
        query_id=query.query_id,
        client=query.client,
        lines=tuple(lines),
        before=None if is_last or not lines else lines[-1].number,
    )


_COPIED = tuple(name for name in replies.AuditLine.__struct_fields__ if name != "number")


def _reach(principal: Principal) -> tuple[str | None, str | None]:
    if allowed(principal, "administer", "", "", ""):
        return None, None
    if scope(principal, "set_shares").reach == "vo":
        return None, principal.vo
    return ("" if scope(principal, "see").reach == "nothing" else principal.owner), None
