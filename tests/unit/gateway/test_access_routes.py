"""Requests about the audit trail and revocations, and the messages that they become."""

from datetime import UTC, datetime

import pytest

from services.gateway.access_routes import ROUTES, BearerToRevoke, RevokedBearer, TrailPage
from services.gateway.operation import NoParameters
from services.gateway.route import Requester, Route
from wms.errors import Rejected
from wms.messages import commands, queries

ME = Requester("an-id", "a-client")


def route(method: str, path: str) -> Route:
    (found,) = [each for each in ROUTES if (each.method, each.path) == (method, path)]
    return found


def test_the_audit_trail_is_searched() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    given = TrailPage(owner="alice", action="kill", job=7, refused=True, since=at, before=9, limit=5)
    assert route("GET", "/audit-trail").message(ME, given) == queries.ListAuditTrail(
        query_id="an-id",
        client="a-client",
        owner="alice",
        action="kill",
        job_id=7,
        refused=True,
        since=at,
        before=9,
        limit=5,
    )
    without_zone = TrailPage(since=at.replace(tzinfo=None))
    with pytest.raises(Rejected, match="BAD_PARAMETER"):
        route("GET", "/audit-trail").message(ME, without_zone)


def test_a_bearer_is_revoked_and_accepted_again() -> None:
    order = route("POST", "/revocations").message(
        ME, NoParameters(), BearerToRevoke(kind="subject", value="mallory", reason="stolen", for_seconds=60.0)
    )
    assert isinstance(order, commands.Revoke)
    assert (order.kind, order.value, order.for_seconds, order.lift) == ("subject", "mallory", 60.0, False)
    order = route("POST", "/revocations/lift").message(
        ME, NoParameters(), RevokedBearer(kind="subject", value="mallory")
    )
    assert isinstance(order, commands.Revoke)
    assert (order.command_id, order.client, order.lift) == ("an-id", "a-client", True)
