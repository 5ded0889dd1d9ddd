"""Tokens: what is verified, and everything that is not."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.auth.issuer import ALICE, NOW, Issuer, code
from wms.auth import token as tokens
from wms.auth.keys import KeySet
from wms.auth.token import Claims, Principal, SigningKey, Verifier, mint
from wms.client.credential import decode
from wms.errors import Rejected
from wms.messages.replies import inbox

PILOT = Claims(kind="pilot", owner="bob", group="pilots", vo="atlas", pilot_id="p1", site="CERN", ce="ce1")


SITE = Claims(kind="site", owner="cern-admin", site="CERN")


def refused(issuer: Issuer, token: str | bytes) -> str:
    return code(lambda: issuer.verifier().verify(token, NOW))


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def test_a_token_gives_its_principal(issuer: Issuer) -> None:
    principal = issuer.verifier().verify(issuer.mint(), NOW)
    assert msgspec.structs.replace(principal, token_id="x") == Principal(
        kind="user",
        owner="alice",
        group="higgs",
        vo="atlas",
        rights=frozenset({"job_monitor"}),
        token_id="x",
        expires_at=NOW + 600,
    )
    pilot = issuer.verifier().verify(issuer.mint(PILOT, key="pilots").encode(), NOW)
    assert (pilot.kind, pilot.pilot_id, pilot.site, pilot.ce) == ("pilot", "p1", "CERN", "ce1")
    assert issuer.verifier().verify(issuer.mint(SITE, key="sites"), NOW).site == "CERN"


JANE = Claims(
    kind="user",
    owner="jane",
    group="higgs",
    vo="atlas",
    certificate_subject="/DC=org/DC=example/CN=Jane Doe",
    fqans=("/atlas/Role=production", "/atlas"),
)


def test_a_token_tells_the_certificate_and_the_roles_of_a_user(issuer: Issuer) -> None:
    principal = issuer.verifier().verify(issuer.mint(JANE), NOW)
    assert principal.certificate_subject == JANE.certificate_subject
    assert principal.fqans == JANE.fqans, "the primary one first"
    plain = issuer.verifier().verify(issuer.mint(), NOW)
    assert (plain.certificate_subject, plain.fqans) == ("", ())


@pytest.mark.parametrize(
    "changed",
    [
        {"certificate_subject": "x" * 1_001},
        {"certificate_subject": "/CN=a\nb"},
        {"certificate_subject": 7},
        {"fqans": ["/atlas"] * 33},
        {"fqans": ["/" + "x" * 255]},
        {"fqans": ["atlas"]},
        {"fqans": "/atlas"},
    ],
)
def test_certificates_and_roles_that_are_none_are_refused(issuer: Issuer, changed: dict[str, Any]) -> None:
    assert code(lambda: issuer.verifier().verify(issuer.sign(**changed), NOW)) == "TOKEN_INVALID"


def test_a_pilot_has_no_certificate_of_a_user(issuer: Issuer) -> None:
    claims = msgspec.structs.replace(PILOT, certificate_subject="/CN=somebody")
    assert code(lambda: issuer.mint(claims, key="pilots")) == "TOKEN_NOT_MINTED"


def test_a_principal_survives_the_dead_letters(issuer: Issuer) -> None:
    principal = issuer.verifier().verify(issuer.mint(), NOW)
    assert msgspec.json.decode(msgspec.json.encode(principal), type=Principal) == principal


def test_times_are_judged_at_each_use_even_of_a_known_token(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.mint()
    assert code(lambda: verifier.verify(token, NOW - 31)) == "TOKEN_NOT_YET_VALID"
    verifier.verify(token, NOW - 29)
    verifier.verify(token, NOW + 599.9)
    assert code(lambda: verifier.verify(token, NOW + 600)) == "TOKEN_EXPIRED"
    assert code(lambda: issuer.verifier().verify(token, NOW + 601)) == "TOKEN_EXPIRED"


@pytest.mark.parametrize(
    ("claims", "key"),
    [
        (ALICE, "pilots"),
        (ALICE, "sites"),
        (msgspec.structs.replace(ALICE, kind="service"), "pilots"),
        (PILOT, "issuer"),
        (PILOT, "sites"),
        (SITE, "pilots"),
    ],
)
def test_a_key_signs_its_own_kinds_only(issuer: Issuer, claims: Claims, key: str) -> None:
    assert code(lambda: issuer.mint(claims, key=key)) == "TOKEN_NOT_MINTED"
    # And a holder of the key who does not ask `mint` gains nothing.
    loose = SigningKey(kid=issuer.keys[key].kid, kinds=(claims.kind,), private=issuer.keys[key].private)
    assert code(lambda: issuer.verifier().verify(mint(loose, claims, 600, NOW), NOW)) == "TOKEN_INVALID"


def test_a_key_that_says_no_kinds_signs_nothing(issuer: Issuer) -> None:
    keys = msgspec.json.decode(issuer.jwks.read_bytes(), type=KeySet)
    bare = KeySet(tuple(msgspec.structs.replace(key, wms_kinds=()) for key in keys.keys))
    assert code(lambda: Verifier(bare).verify(issuer.mint(), NOW)) == "TOKEN_INVALID"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "other"},
        {"aud": "other"},
        {"iss": None},
        {"aud": None},
        {"sub": None},
        {"exp": None},
        {"nbf": None},
        {"iat": None},
        {"jti": None},
        {"kind": None},
        {"kind": "root"},
        {"group": None},
        {"vo": ""},
        {"sub": ""},
        {"sub": 5},
        {"sub": "a\nb"},
        {"sub": "x" * 256},
        {"rights": "operator"},
        {"rights": ["a\x1b"]},
        {"exp": "never"},
        {"exp": float("nan")},
        {"exp": float("inf")},
    ],
)
def test_claims_that_are_wrong_or_missing_are_refused(issuer: Issuer, changed: dict[str, Any]) -> None:
    assert code(lambda: issuer.verifier().verify(issuer.sign(**changed), NOW)) == "TOKEN_INVALID"


def test_a_pilot_may_be_bound_to_one_job_and_nobody_else(issuer: Issuer) -> None:
    bound = msgspec.structs.replace(PILOT, job_id=7)
    assert issuer.verifier().verify(issuer.mint(bound, key="pilots"), NOW).job_id == 7
    assert issuer.verifier().verify(issuer.mint(PILOT, key="pilots"), NOW).job_id is None
    for claims, key in ((ALICE, "issuer"), (SITE, "sites")):
        with pytest.raises(Rejected, match="no single job"):
            issuer.mint(msgspec.structs.replace(claims, job_id=7), key=key)


@pytest.mark.parametrize("missing", ["pilot_id", "site", "ce", "vo"])
def test_a_pilot_s_token_is_bound(issuer: Issuer, missing: str) -> None:
    empty = "" if missing == "vo" else None
    unbound = msgspec.structs.replace(PILOT, **{missing: empty})
    assert code(lambda: issuer.mint(unbound, key="pilots")) == "TOKEN_NOT_MINTED"


@pytest.mark.parametrize("alg", ["none", "HS256", "RS256", "ES384"])
def test_other_algorithms_are_refused(issuer: Issuer, alg: str) -> None:
    header, body, signature = issuer.mint().split(".")
    names = json.loads(base64.urlsafe_b64decode(header + "=="))
    forged = f"{encoded(json.dumps(names | {'alg': alg}).encode())}.{body}"
    public = issuer.jwks.read_bytes()
    mac = hmac.new(public, forged.encode(), hashlib.sha256).digest()
    for tail in ("", signature, encoded(mac), encoded(mac * 2)):
        assert refused(issuer, f"{forged}.{tail}") == "TOKEN_INVALID"


def test_hints_in_the_header_are_refused(issuer: Issuer) -> None:
    for headers in ({"jku": "https://evil"}, {"crit": ["exp"]}, {"kid": "other"}, {"kid": ""}):
        assert refused(issuer, issuer.sign(headers=headers)) == "TOKEN_INVALID"


def test_another_issuer_s_token_is_refused(issuer: Issuer, tmp_path: Path) -> None:
    stranger = Issuer(tmp_path / "other")
    assert code(lambda: issuer.verifier().verify(stranger.mint(), NOW)) == "TOKEN_INVALID"
    disguised = SigningKey(
        kid=issuer.keys["issuer"].kid, kinds=("user",), private=stranger.keys["issuer"].private
    )
    assert code(lambda: issuer.verifier().verify(mint(disguised, ALICE, 600, NOW), NOW)) == "TOKEN_INVALID"


@pytest.mark.parametrize(
    "text", ["a", "a.b.c", "." * 100, "Bearer x", "\ud800", "ü.b.c", "a" * 9000, b"\xff\xfe"]
)
def test_what_is_no_token_is_refused(issuer: Issuer, text: str | bytes) -> None:
    assert code(lambda: issuer.verifier().verify(text, NOW)) == "TOKEN_INVALID"
    assert issuer.verifier().subject(text) == ""


def test_size_and_absence(issuer: Issuer) -> None:
    for nothing in ("", b""):
        assert refused(issuer, nothing) == "TOKEN_MISSING"
    large = issuer.sign(note="x" * 8192)
    assert code(lambda: issuer.verifier().verify(large, NOW)) == "TOKEN_INVALID"


def test_every_single_bit_matters(issuer: Issuer) -> None:
    token = issuer.mint().encode()
    verifier = issuer.verifier()
    verifier.verify(token, NOW)
    for at in range(len(token) * 8):
        changed = bytearray(token)
        changed[at // 8] ^= 1 << (at % 8)
        with pytest.raises(Rejected):
            verifier.verify(bytes(changed), NOW)


@settings(deadline=None)
@given(st.data())
def test_no_changed_token_verifies(issuer: Issuer, data: st.DataObject) -> None:
    token = issuer.mint()
    start = data.draw(st.integers(0, len(token)))
    end = data.draw(st.integers(start, min(len(token), start + 8)))
    changed = token[:start] + data.draw(st.text("abcAQgw019-_.= \n\0", max_size=8)) + token[end:]
    if changed != token:
        with pytest.raises(Rejected):
            issuer.verifier().verify(changed, NOW)


@settings(deadline=None)
@given(st.text(min_size=1, max_size=300), st.floats(0, 2**33))
def test_no_text_breaks_the_verifier_and_no_error_holds_the_token(
    issuer: Issuer, text: str, now: float
) -> None:
    with pytest.raises(Rejected) as fault:
        issuer.verifier().verify(text, now)
    assert text not in str(fault.value) or len(text) < 20


def test_errors_never_hold_the_token(issuer: Issuer) -> None:
    for bad in (issuer.sign(iss="other"), issuer.mint()[:-4] + "AAAA", issuer.sign(rights="x")):
        with pytest.raises(Rejected) as fault:
            issuer.verifier().verify(bad, NOW)
        said = str(fault.value) + repr(fault.value)
        assert not any(part in said for part in bad.split("."))
        assert fault.value.__cause__ is None


def test_whose_a_refused_token_is(issuer: Issuer, tmp_path: Path) -> None:
    verifier, expired = issuer.verifier(), issuer.mint()
    assert code(lambda: verifier.verify(expired, NOW + 10_000)) == "TOKEN_EXPIRED"
    assert verifier.subject(expired) == "alice"
    # Of a forgery nobody is told: it names whom the forger likes.
    assert Issuer(tmp_path).verifier().subject(expired) == ""
    assert verifier.subject(issuer.sign(sub="a\nb")) == ""


def test_no_token_lives_for_long(issuer: Issuer) -> None:
    assert code(lambda: issuer.mint(lifetime=tokens.LIFETIME_LIMIT + 1)) == "TOKEN_NOT_MINTED"
    long = issuer.sign(exp=int(NOW) + tokens.LIFETIME_LIMIT + 60)
    assert code(lambda: issuer.verifier().verify(long, NOW)) == "TOKEN_INVALID"


@pytest.mark.parametrize("claims", [ALICE, PILOT, SITE], ids=lambda claims: claims.kind)
def test_a_token_issued_in_the_future_is_refused(issuer: Issuer, claims: Claims) -> None:
    key = {"user": "issuer", "pilot": "pilots", "site": "sites"}[claims.kind]
    body = {**msgspec.to_builtins(claims), "rights": None, "nbf": int(NOW)}
    soon = issuer.sign(key, **{**body, "iat": int(NOW) + 31})
    assert code(lambda: issuer.verifier().verify(soon, NOW)) == "TOKEN_NOT_YET_VALID"
    late = int(NOW) + 100 * tokens.LIFETIME_LIMIT
    far = issuer.sign(key, **{**body, "iat": late, "exp": late + 60})
    assert code(lambda: issuer.verifier().verify(far, NOW)) == "TOKEN_INVALID"


def test_the_cache_holds_no_token(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.mint()
    verifier.verify(token, NOW)
    assert token not in repr(vars(verifier))


def test_the_cache_is_bounded(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "CACHE_LIMIT", 3)
    verifier = issuer.verifier()
    for _ in range(5):
        verifier.verify(issuer.mint(), NOW)
    assert len(verifier._good) <= 3


def test_a_known_token_costs_little(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.mint()
    verifier.verify(token, NOW)
    started = time.process_time()
    for _ in range(10_000):
        verifier.verify(token, NOW)
    assert time.process_time() - started < 1


def test_a_sites_token_may_be_for_many_sites(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    sites = frozenset({"*.nordic.org", "umea"})
    made = issuer.mint(Claims(kind="site", owner="index", sites=sites), key="sites")
    verified = issuer.verifier().verify(made, NOW)
    assert (verified.kind, verified.site, verified.sites) == ("site", None, sites)
    with pytest.raises(Rejected, match="for no sites"):
        issuer.mint(Claims(kind="user", owner="a", group="g", vo="v", sites=sites))
    with pytest.raises(Rejected, match="needs site"):
        issuer.mint(Claims(kind="site", owner="index"), key="sites")


def test_users_of_two_issuers_with_one_name_are_two_users(issuer: Issuer, tmp_path: Path) -> None:
    """Owner, and with it inbox, jobs and shares, come of issuer and subject together."""
    other = Issuer(tmp_path)
    known = msgspec.json.decode((tmp_path / "jwks.json").read_bytes(), type=KeySet)
    foreign = tuple(replace(each, wms_issuer="https://other.example.org") for each in known.keys)
    own = msgspec.json.decode((issuer.directory / "jwks.json").read_bytes(), type=KeySet)
    verifier = Verifier(KeySet((*own.keys, *foreign)))
    theirs = other.sign(iss="https://other.example.org")
    assert verifier.verify(issuer.mint(), NOW).owner == "alice"
    assert verifier.verify(theirs, NOW).owner == "https://other.example.org#alice"
    assert decode(theirs.encode(), "a file").owner == "https://other.example.org#alice"
    assert inbox("alice") != inbox("https://other.example.org#alice")
    # Neither may speak as the other, by its own name for it or by ours.
    assert code(lambda: verifier.verify(other.mint(), NOW)) == "TOKEN_INVALID"
    assert code(lambda: verifier.verify(issuer.sign(iss="https://other.example.org"), NOW)) == "TOKEN_INVALID"
    assert (
        code(lambda: verifier.verify(issuer.sign(sub="https://other.example.org#alice"), NOW))
        == "TOKEN_INVALID"
    )
    assert code(lambda: issuer.mint(replace(ALICE, owner="x#alice"))) == "TOKEN_NOT_MINTED"
