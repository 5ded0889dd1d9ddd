"""Rows of `wms whoami`, `wms audit-trail` and `wms revoke`."""

from tests.unit.messages.access_examples import FULL
from wms.cli import access
from wms.messages import replies


def test_an_identity_is_told_with_its_limits() -> None:
    found = FULL["who-you-are"]
    assert isinstance(found, replies.WhoYouAre)
    rows = dict(access.who_rows(found))
    assert rows["owner"] == "https://iam.example.org/#a1b2"
    assert (rows["rights"], rows["actions"]) == ("job_administrator", "see, submit")
    assert rows["expires"].endswith("Z")


def test_a_refusal_shows_its_code() -> None:
    found = FULL["audit-trail"]
    assert isinstance(found, replies.AuditTrail)
    ((when, _, action, subject, answer),) = access.trail_rows(found.lines)
    assert (when, action, subject) == ("2026-03-01T12:30:15Z", "set-share", "vo:cms")
    assert str(answer).startswith("NOT_ALLOWED: ")


def test_a_revocation_shows_until_when_it_holds() -> None:
    found = FULL["revocation-list"]
    assert isinstance(found, replies.RevocationList)
    (row,) = access.revocation_rows(found.revocations)
    assert row[3] == "2026-03-01T13:00:00Z"
