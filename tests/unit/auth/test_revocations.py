"""Revocations of tokens, subjects and pilots."""

from pathlib import Path

import pytest

from tests.unit.auth.issuer import ALICE, NOW, Issuer, code
from wms.auth.principal import Principal
from wms.auth.revocations import Revocation, Revocations
from wms.auth.token import Claims, Verifier

PILOT = Claims(kind="pilot", owner="alice", group="higgs", vo="atlas", pilot_id="p-1", site="A", ce="c")


def bearer(issuer: Issuer, claims: Claims, key: str) -> Principal:
    return issuer.verifier().verify(issuer.mint(claims, key=key), NOW)


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path)


def test_a_revoked_token_is_refused_and_its_bearers_next_one_is_not(issuer: Issuer) -> None:
    revocations = Revocations()
    verifier = Verifier.from_file(issuer.jwks, revocations=revocations)
    token, other = issuer.mint(), issuer.mint()
    revocations.replace([Revocation("token", verifier.verify(token, NOW).token_id)])
    assert code(lambda: verifier.verify(token, NOW)) == "TOKEN_REVOKED"
    assert verifier.verify(other, NOW).owner == "alice"
    assert verifier.subject(token) == "alice"
    revocations.replace([])
    assert verifier.verify(token, NOW).owner == "alice"


def test_a_revoked_subject_is_refused_and_its_pilots_are_not(issuer: Issuer) -> None:
    revocations = Revocations([Revocation("subject", "alice")])
    assert code(lambda: revocations.check(bearer(issuer, ALICE, "issuer"))) == "TOKEN_REVOKED"
    revocations.check(bearer(issuer, PILOT, "pilots"))


def test_a_revoked_pilot_is_refused(issuer: Issuer) -> None:
    revocations = Revocations([Revocation("pilot", "p-1"), Revocation("pilot", "alice")])
    assert code(lambda: revocations.check(bearer(issuer, PILOT, "pilots"))) == "TOKEN_REVOKED"
    revocations.check(bearer(issuer, ALICE, "issuer"))


def test_a_principal_that_was_kept_is_checked_again(issuer: Issuer) -> None:
    revocations = Revocations()
    verifier = Verifier.from_file(issuer.jwks, revocations=revocations)
    kept = verifier.verify(issuer.mint(), NOW)
    verifier.check_kept(kept)
    revocations.replace([Revocation("subject", "alice")])
    assert code(lambda: verifier.check_kept(kept)) == "TOKEN_REVOKED"
