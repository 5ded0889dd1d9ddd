"""Examples of messages about access: identities, the audit trail, revocations."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from wms.ids import CommandId
from wms.messages import commands, queries, replies

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}
OWNER = "https://iam.example.org/#a1b2"

FULL: dict[str, msgspec.Struct] = {
    "revoke": commands.Revoke(
        command_id=CommandId("c-12"), kind="token", value="0f3c", lift=True, for_seconds=60.0, reason="lost", client="cli-7"
    ),
    "who-am-i": queries.WhoAmI(**ASKED),
    "list-audit-trail": queries.ListAuditTrail(
        **ASKED, owner=OWNER, action="kill", site="glasgow", job_id=17, refused=True, since=AT, before=99, limit=10
    ),
    "list-revocations": queries.ListRevocations(**ASKED, after=100, limit=50),
    "who-you-are": replies.WhoYouAre(
        **ASKED,
        kind="user",
        owner=OWNER,
        owner_group="production",
        vo="atlas",
        rights=("job_administrator",),
        actions=("see", "submit"),
        shares_jobs=True,
        token_id="t-1",
        expires_at=1_900_000_000.5,
    ),
    "audit-trail": replies.AuditTrail(
        **ASKED,
        lines=(
            replies.AuditLine(
                number=41,
                at=AT,
                owner=OWNER,
                owner_group="production",
                vo="atlas",
                token_id="t-1",
                command_id="c-1",
                action="set-share",
                subject='{"vo":"cms"}',
                site="glasgow",
                code="NOT_ALLOWED",
                answer="you have no right to set shares in VO cms",
            ),
        ),
        before=41,
    ),
    "revocation-list": replies.RevocationList(
        **ASKED,
        revocations=(
            replies.RevocationLine(
                kind="subject", value=OWNER, revoked_at=AT, revoked_by="oz", reason="left", expires_at=LATER
            ),
        ),
        after=50,
    ),
}  # fmt: skip

MINIMAL: dict[str, msgspec.Struct] = {
    "revoke": commands.Revoke(command_id=CommandId("c"), kind="pilot", value="p"),
    "who-am-i": queries.WhoAmI(query_id="q"),
    "list-audit-trail": queries.ListAuditTrail(query_id="q"),
    "list-revocations": queries.ListRevocations(query_id="q"),
    "who-you-are": replies.WhoYouAre(
        query_id="q", client="", kind="user", owner="o", owner_group="", vo="", token_id="t", expires_at=1.0
    ),
    "audit-trail": replies.AuditTrail(query_id="q", client="", lines=()),
    "revocation-list": replies.RevocationList(query_id="q", client="", revocations=()),
}
