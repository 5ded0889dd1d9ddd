"""Tokens of trusted issuers, verified beside this system's own."""

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.unit.auth.foreign_issuer import RSA_KEY, TRUSTED, URL, ForeignIssuer
from tests.unit.auth.issuer import NOW, Issuer, code
from wms.auth.foreign_token import issuer_in
from wms.auth.issuer_keys import IssuerKeys
from wms.auth.token import Verifier


class Trusting:
    """A verifier that trusts a foreign issuer beside its own."""

    def __init__(self, directory: Path) -> None:
        self.own = Issuer(directory)
        self.foreign = ForeignIssuer()
        self.foreign.keys["rsa-1"] = RSA_KEY
        self.keys = IssuerKeys((TRUSTED,))
        self.keys.take(TRUSTED, self.foreign.jwks(), NOW)
        self.verifier = Verifier.from_file(self.own.jwks, self.keys)

    def code(self, token: str, now: float = NOW) -> str:
        return code(lambda: self.verifier.verify(token, now))


@pytest.fixture
def trusting(tmp_path: Path) -> Trusting:
    return Trusting(tmp_path)


@pytest.mark.parametrize("kid", ["ec-1", "rsa-1"])
def test_a_users_token_of_either_algorithm_is_good(trusting: Trusting, kid: str) -> None:
    bearer = trusting.verifier.verify(trusting.foreign.sign(kid), NOW)
    assert (bearer.owner, bearer.vo, bearer.token_id) == (f"{URL}#a1b2", "atlas", "t-1")


def test_own_tokens_stay_good(trusting: Trusting) -> None:
    assert trusting.verifier.verify(trusting.own.mint(), NOW).owner == "alice"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://evil.example.org/"},
        {"iss": URL.rstrip("/")},
        {"iss": "wms"},
        {"aud": "other"},
        {"sub": None},
        {"exp": None},
        {"iat": None},
        {"aud": None},
        {"exp": "soon"},
        {"exp": int(NOW) + 40 * 86_400},
        {"wlcg.groups": "/atlas"},
        {"wlcg.groups": ["/atlas"] * 1_001},
    ],
)
def test_a_token_with_other_claims_is_refused(trusting: Trusting, changed: dict[str, Any]) -> None:
    assert trusting.code(trusting.foreign.sign(**changed)) == "TOKEN_INVALID"


def test_times_are_kept(trusting: Trusting) -> None:
    token = trusting.foreign.sign()
    assert trusting.code(token, NOW + 600) == "TOKEN_EXPIRED"
    assert trusting.code(token, NOW - 31) == "TOKEN_NOT_YET_VALID"
    later = int(NOW) + 40 * 86_400
    assert trusting.code(trusting.foreign.sign(iat=later, exp=later + 60)) == "TOKEN_INVALID"
    assert trusting.verifier.subject(token) == f"{URL}#a1b2"


def test_a_forged_signature_is_refused_and_answered_to_nobody(trusting: Trusting) -> None:
    forger = ForeignIssuer()
    assert trusting.code(forger.sign()) == "TOKEN_INVALID"
    assert trusting.verifier.subject(forger.sign()) == ""


def test_the_issuers_public_key_is_no_secret_for_a_code(trusting: Trusting) -> None:
    body = jwt.decode(trusting.foreign.sign(), options={"verify_signature": False})
    for algorithm, key in (("HS256", b"x" * 32), ("none", None)):
        token = jwt.encode(body, key, algorithm, headers={"kid": "ec-1"})  # type: ignore[arg-type]
        assert trusting.code(token if token.rpartition(".")[2] else f"{token}AA") == "TOKEN_INVALID"


@pytest.mark.parametrize("headers", [{"kid": None}, {"crit": ["exp"]}, {"kid": 7}])
def test_headers_with_other_instructions_are_refused(trusting: Trusting, headers: dict[str, Any]) -> None:
    good = trusting.foreign.sign()
    head = {"alg": "ES256", "kid": "ec-1", "typ": "JWT"} | headers
    first = base64.urlsafe_b64encode(json.dumps(head).encode()).rstrip(b"=").decode()
    assert trusting.code(f"{first}.{good.partition('.')[2]}") == "TOKEN_INVALID"


def test_a_key_in_the_header_is_not_used(trusting: Trusting) -> None:
    forger = ForeignIssuer()
    jwk = json.loads(forger.jwks())["keys"][0]
    assert (
        trusting.code(forger.sign(headers={"jwk": jwk, "jku": "https://evil.example.org"})) == "TOKEN_INVALID"
    )


def test_an_unknown_key_is_refused_at_once_and_good_once_it_is_fetched(trusting: Trusting) -> None:
    trusting.foreign.keys["ec-2"] = ec.generate_private_key(ec.SECP256R1())
    token = trusting.foreign.sign("ec-2")
    assert trusting.code(token) == "TOKEN_KEY_UNKNOWN"
    assert trusting.verifier.subject(token) == ""
    assert trusting.keys.due(NOW + 10) == [TRUSTED]
    trusting.keys.take(TRUSTED, trusting.foreign.jwks(), NOW + 10)
    assert trusting.verifier.verify(token, NOW + 10).vo == "atlas"


def test_a_token_in_the_cache_ends_with_its_key(trusting: Trusting) -> None:
    token = trusting.foreign.sign()
    trusting.verifier.verify(token, NOW)
    del trusting.foreign.keys["ec-1"]
    trusting.keys.take(TRUSTED, trusting.foreign.jwks(), NOW + 1)
    assert trusting.code(token, NOW + 1) == "TOKEN_KEY_WITHDRAWN"


def test_a_foreign_key_signs_no_token_of_our_own(trusting: Trusting) -> None:
    pem = trusting.foreign.keys["ec-1"].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    body = jwt.decode(trusting.own.mint(), options={"verify_signature": False})
    for issuer in ("wms", URL):
        token = jwt.encode({**body, "iss": issuer}, pem, "ES256", headers={"kid": "ec-1"})
        assert trusting.code(token) == "TOKEN_INVALID"


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "a.bnVsbA.c", "a." + "W" * 4_000 + ".c"])
def test_the_issuer_of_what_is_no_token_is_nobody(text: str) -> None:
    assert issuer_in(text) == ""
