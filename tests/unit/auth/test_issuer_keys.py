"""Keys of trusted issuers: rotation, withdrawal, outages, and the rate of looks."""

import json
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.unit.auth.foreign_issuer import RSA_KEY, TRUSTED, URL, ForeignIssuer, published
from tests.unit.auth.issuer import NOW, code
from wms.auth.issuer_keys import AGAIN_SECONDS, IssuerKeys

HOUR = 3_600.0


@pytest.fixture
def keys() -> IssuerKeys:
    return IssuerKeys((TRUSTED,))


@pytest.fixture
def issuer() -> ForeignIssuer:
    return ForeignIssuer()


def test_an_issuer_is_looked_at_first_and_then_every_so_often(
    keys: IssuerKeys, issuer: ForeignIssuer
) -> None:
    assert keys.due(NOW) == [TRUSTED]
    keys.take(TRUSTED, issuer.jwks(), NOW)
    assert keys.due(NOW + TRUSTED.refresh_seconds - 1) == []
    assert keys.due(NOW + TRUSTED.refresh_seconds) == [TRUSTED]


def test_an_unknown_key_asks_again_at_a_bounded_rate(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    keys.take(TRUSTED, issuer.jwks(), NOW)
    assert code(lambda: keys.find(URL, "ec-2")) == "TOKEN_KEY_UNKNOWN"
    assert keys.due(NOW + AGAIN_SECONDS - 1) == []
    assert keys.due(NOW + AGAIN_SECONDS) == [TRUSTED]
    issuer.keys["ec-2"] = ec.generate_private_key(ec.SECP256R1())
    keys.take(TRUSTED, issuer.jwks(), NOW + AGAIN_SECONDS)
    keys.check(keys.find(URL, "ec-2"), NOW + AGAIN_SECONDS)
    assert keys.due(NOW + 2 * AGAIN_SECONDS) == []


def test_a_withdrawn_key_is_refused_at_the_next_look(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    keys.take(TRUSTED, issuer.jwks(), NOW)
    old = keys.find(URL, "ec-1")
    issuer.keys = {"ec-2": ec.generate_private_key(ec.SECP256R1())}
    keys.take(TRUSTED, issuer.jwks(), NOW + 300)
    assert code(lambda: keys.check(old, NOW + 300)) == "TOKEN_KEY_WITHDRAWN"
    assert code(lambda: keys.find(URL, "ec-1")) == "TOKEN_KEY_UNKNOWN"


def test_another_key_under_the_same_name_ends_the_old_one(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    keys.take(TRUSTED, issuer.jwks(), NOW)
    old = keys.find(URL, "ec-1")
    keys.take(TRUSTED, issuer.jwks(), NOW + 300)
    keys.check(old, NOW + 300)
    issuer.keys["ec-1"] = ec.generate_private_key(ec.SECP256R1())
    keys.take(TRUSTED, issuer.jwks(), NOW + 600)
    assert code(lambda: keys.check(old, NOW + 600)) == "TOKEN_KEY_WITHDRAWN"


def test_an_hours_outage_is_survived_and_a_days_is_not(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    keys.take(TRUSTED, issuer.jwks(), NOW)
    held = keys.find(URL, "ec-1")
    at, looks = NOW + TRUSTED.refresh_seconds, 0
    while at < NOW + HOUR:
        if keys.due(at):
            keys.failed(TRUSTED, "no answer", at)
            looks += 1
        keys.check(held, at)
        at += 1
    assert 50 <= looks <= 65
    assert keys.health(at)[URL]["trouble"] == "no answer"
    assert code(lambda: keys.check(held, NOW + TRUSTED.trusted_seconds)) == "ISSUER_SILENT"


def test_keys_that_cannot_be_read_change_nothing(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    keys.take(TRUSTED, issuer.jwks(), NOW)
    held = keys.find(URL, "ec-1")
    for bad in (
        b"",
        b"[]",
        b'{"keys":[]}',
        b'{"keys":{}}',
        b"\xff",
        b'{"keys":[{"kty":"oct","k":"x","kid":"ec-1"}]}',
    ):
        assert code(lambda bad=bad: keys.take(TRUSTED, bad, NOW + 1)) == "KEYS_INVALID"  # type: ignore[misc]
    keys.check(held, NOW + 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"use": "enc"},
        {"kid": ""},
        {"alg": "ES384"},
        {"alg": "HS256"},
        {"kty": "oct"},
        {"crv": "P-384"},
        {"x": "AA"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    ],
)
def test_keys_of_other_uses_kinds_and_strengths_are_left_out(
    keys: IssuerKeys, issuer: ForeignIssuer, changed: dict[str, Any]
) -> None:
    odd = {**published("odd", issuer.keys["ec-1"]), **changed}
    keys.take(TRUSTED, json.dumps({"keys": [odd, *json.loads(issuer.jwks())["keys"]]}).encode(), NOW)
    assert keys.health(NOW)[URL]["keys"] == 1


def test_weak_rsa_keys_are_left_out_and_strong_ones_taken(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    issuer.keys["rsa"] = RSA_KEY
    issuer.keys["weak"] = rsa.generate_private_key(65_537, 1_024)
    keys.take(TRUSTED, issuer.jwks(), NOW)
    assert keys.find(URL, "rsa").algorithm == "RS256"
    assert code(lambda: keys.find(URL, "weak")) == "TOKEN_KEY_UNKNOWN"


def test_of_two_keys_with_one_name_none_is_used(keys: IssuerKeys, issuer: ForeignIssuer) -> None:
    other = ForeignIssuer()
    both = [published("ec-1", each.keys["ec-1"]) for each in (issuer, other)]
    rest = published("ec-9", other.keys["ec-1"])
    keys.take(TRUSTED, json.dumps({"keys": [*both, rest]}).encode(), NOW)
    assert code(lambda: keys.find(URL, "ec-1")) == "TOKEN_KEY_UNKNOWN"


def test_an_issuer_is_configured_once() -> None:
    again = msgspec.structs.replace(TRUSTED, audiences=("other",))
    assert code(lambda: IssuerKeys((TRUSTED, again))) == "CONFIG_INVALID"
