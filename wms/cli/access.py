"""`wms whoami`, `wms audit-trail`, `wms revoke`: who the user is, who gave which orders, and which tokens, users and pilots are refused."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions, Duration, Flag, Moment, Most, WithinBounds
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import stamp
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wms.client import Client
    from wms.messages.replies import AuditLine, RevocationLine, WhoYouAre

TRAIL = (
    TableColumn("WHEN", ALWAYS),
    TableColumn("WHO", 1, "cut", 10),
    TableColumn("ACTION", ALWAYS),
    TableColumn("ON", 3, "wrap", 20),
    TableColumn("ANSWER", 2, "wrap", 20),
)
REVOCATIONS = (
    TableColumn("KIND", ALWAYS),
    TableColumn("VALUE", ALWAYS),
    TableColumn("BY", 2, "cut", 8),
    TableColumn("UNTIL", 1),
    TableColumn("WHY", 3, "wrap", 20),
)
JobId = Annotated[int | None, Parameter(validator=WithinBounds(0, 2**62), show_default=False)]
Term = Annotated[Duration | None, Parameter(show_default=False)]


def whoami(*, common: CommonOptions = USUAL) -> int:
    """Show who you are to the system.

    RIGHTS come from your token, or from the system's rules for its issuer. ACTIONS are shown if the token's scopes limit it: it permits these actions alone.

    For example:
      wms whoami
      wms whoami --json
      wms whoami --token ./other.token
    """

    async def work(client: "Client") -> int:
        found = await client.whoami()
        show_json(found) if common.json else show_table(("CLAIM", "VALUE"), who_rows(found))
        return OK

    return with_client(common, work)


def who_rows(found: "WhoYouAre") -> list[tuple[str, str]]:
    """Return the rows of the table that shows an identity. A row is a claim and its value."""
    from datetime import UTC, datetime

    expires = datetime.fromtimestamp(found.expires_at, UTC)
    return [
        ("owner", found.owner),
        ("kind", found.kind),
        ("group", found.owner_group or "-"),
        ("vo", found.vo or "-"),
        ("rights", ", ".join(found.rights) or "-"),
        *([] if found.actions is None else [("actions", ", ".join(found.actions) or "none")]),
        ("token", found.token_id),
        ("expires", stamp(expires)),
    ]


def audit_trail(
    job: Annotated[JobId, Parameter(help="A job that the order named by its id")] = None,
    /,
    *,
    owner: str = "",
    action: str = "",
    site: str = "",
    refused: Flag = False,
    since: Moment | None = None,
    limit: Most = 50,
    common: CommonOptions = USUAL,
) -> int:
    """List orders and refusals, the newest first: who ordered what, on what, and the answer.

    An order is recorded in one transaction with its effects, and the database refuses to change the record. You see your own orders; administrators see those of their VO, operators see all. With --json each line is one object.

    For example:
      wms audit-trail
      wms audit-trail 17
      wms audit-trail --refused --since 1d
      wms audit-trail --action kill --owner alice --json

    Parameters
    ----------
    owner
        Orders of this owner.
    action
        Orders of this kind: kill, hold, edit, set-share, rule-site, revoke, ...
    site
        Orders on this site.
    refused
        Only what was refused.
    since
        Only since this time: 2h (ago), 2026-11-22, or 2026-11-22T08:00:00Z.
    limit
        The greatest number of lines to show; 0 shows all.
    """

    async def work(client: "Client") -> int:
        sought = client.audit_trail(
            owner=owner, action=action, site=site, job=job, refused=refused, since=since,
            limit=limit + 1 if limit else None,
        )  # fmt: skip
        found = [each async for each in sought]
        _show_trail(found[:limit] if limit else found, common)
        if limit and len(found) > limit:
            note(f"there are more than {limit:,}: --limit shows more, --limit 0 all")
        return OK

    return with_client(common, work)


def _show_trail(lines: "list[AuditLine]", common: CommonOptions) -> None:
    if common.json:
        for each in lines:
            show_json(each)
    else:
        show_table(TRAIL, trail_rows(lines), empty="nothing was ordered")


def trail_rows(lines: "Iterable[AuditLine]") -> list[tuple[object, ...]]:
    """Return the table rows of orders: time, owner, action, subject and answer."""
    return [
        (
            stamp(each.at),
            each.owner,
            each.action,
            each.subject.strip("{}").replace('"', "") or "-",
            f"{each.code}: {each.answer}" if each.code else each.answer,
        )
        for each in lines
    ]


def revoke(
    kind: Annotated[
        Literal["list", "token", "subject", "pilot"], Parameter(help="what to revoke, or list")
    ] = "list",
    value: Annotated[str, Parameter(help="the token's id, the owner, or the pilot's id")] = "",
    /,
    *,
    reason: str = "",
    duration: Annotated[Term, Parameter(name="--for")] = None,
    lift: Flag = False,
    common: CommonOptions = USUAL,
) -> int:
    """Have all services refuse a token, a subject or a pilot; or list what is revoked.

    A revocation holds within seconds in all services, also after restarts. A token is named by its id (jti), which `wms whoami` and `wms audit-trail --json` show; a subject by the name that its jobs have as owner. The jobs and pilots of a revoked subject keep running: kill the jobs, and revoke the pilots by their ids.

    For example:
      wms revoke
      wms revoke subject alice --reason 'stolen laptop' --for 2d
      wms revoke subject alice --lift
      wms revoke token 0f3c2a --reason 'in a log file'
      wms revoke pilot p-6f1d2c3b4a596877

    Parameters
    ----------
    reason
        The reason, which is kept.
    duration
        How long the revocation holds: 2h, 7d. Default: a subject until --lift, a token or a pilot 31 days, which is longer than any token is valid.
    lift
        End the revocation.
    """

    async def work(client: "Client") -> int:
        if kind == "list":
            _show_revocations(await client.revocations(), common)
            return OK
        said = await client.revoke(kind, value, reason=reason, for_seconds=duration, lift=lift)
        show_json({"said": said}) if common.json else show(said)
        return OK

    _check_value(kind, value)
    return with_client(common, work)


def _check_value(kind: str, value: str) -> None:
    from wms.errors import Rejected

    if kind != "list" and not value:
        raise Rejected("BAD_OPTION", f"no {kind} is named", "`wms revoke --help` has examples")


def _show_revocations(found: "tuple[RevocationLine, ...]", common: CommonOptions) -> None:
    if common.json:
        show_json(found)
    else:
        show_table(REVOCATIONS, revocation_rows(found), empty="nothing is revoked")


def revocation_rows(found: "Iterable[RevocationLine]") -> list[tuple[object, ...]]:
    """Return the table rows of revocations: kind, value, operator, end and reason."""
    return [
        (
            each.kind,
            each.value,
            each.revoked_by,
            stamp(each.expires_at) if each.expires_at else "lifted",
            each.reason or "-",
        )
        for each in found
    ]
