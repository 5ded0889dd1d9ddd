"""Tokens of payloads: who may make one, what it names, and that no changed or foreign one is valid."""

import base64
import hmac
import json
import secrets
import time

import jwt
import pytest

from tests.unit.auth.issuer import Issuer, code
from wms.auth.orders import OrderKeys, PilotKey
from wms.auth.payload_token import LIFETIME_LIMIT, payload_token, verified_payload
from wms.auth.revocations import Revocation, Revocations
from wms.auth.token import Verifier
from wms.client.credential import decode
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId

NOW = 1_900_000_000.0
OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)
KEYS = OrderKeys([NEW, OLD])
ATTEMPT = AttemptId(JobId(7), Epoch(3))


def token_of(pilot_id: str = "p1", secret: bytes = NEW, attempt: AttemptId = ATTEMPT) -> str:
    key = PilotKey(pilot_id, OrderKeys([secret]).of_pilot(pilot_id))
    return payload_token(key, attempt, 3_600.0, NOW)


def verifier(issuer: Issuer, *revoked: Revocation, keys: OrderKeys | None = KEYS) -> Verifier:
    return Verifier.from_file(issuer.jwks, revocations=Revocations(revoked), orders=keys)


def test_a_token_names_job_epoch_and_pilot(issuer: Issuer) -> None:
    found = verifier(issuer).verify(token_of(), NOW + 1)
    assert (found.kind, found.job_id, found.epoch, found.pilot_id) == ("payload", 7, 3, "p1")
    assert (found.owner, found.group, found.vo, found.rights) == ("#job-7.3", "", "", frozenset())
    with pytest.raises(Rejected, match="expired"):
        verifier(issuer).verify(token_of(), NOW + 3_600)


def test_tokens_by_both_secrets_of_the_services_are_valid() -> None:
    assert {verified_payload(token_of(secret=each), KEYS).principal.job_id for each in (OLD, NEW)} == {7}
    with pytest.raises(Rejected, match="signature"):
        verified_payload(token_of(secret=secrets.token_bytes(32)), KEYS)


def test_a_client_reads_it_as_any_token() -> None:
    found = decode(token_of().encode(), "a file")
    assert (found.owner, found.expires_at) == ("#job-7.3", NOW + 3_600)


def test_it_lives_as_long_as_may_be_and_no_longer() -> None:
    key = PilotKey("p1", KEYS.of_pilot("p1"))
    token = payload_token(key, ATTEMPT, 1e12, NOW)
    assert verified_payload(token, KEYS).principal.expires_at == NOW + LIFETIME_LIMIT


def test_every_change_of_a_token_is_refused(issuer: Issuer) -> None:
    checking, token = verifier(issuer), token_of()
    for place in range(len(token)):
        other = "A" if token[place] != "A" else "B"
        with pytest.raises(Rejected):
            checking.verify(token[:place] + other + token[place + 1 :], NOW)
    for changed in (token + "A", token[:-1], token + "=", token.replace(".", ".."), token * 20, token + "é"):
        with pytest.raises(Rejected):
            checking.verify(changed, NOW)


def forged(signer: str, **claims: object) -> str:
    head, body, _ = token_of(signer).split(".")
    content = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))) | claims
    signed = f"{head}.{_encoded(json.dumps(content).encode())}"
    key = PilotKey(signer, KEYS.of_pilot(signer)).derived(b"payload")
    return f"{signed}.{_encoded(hmac.digest(key, signed.encode(), 'sha256'))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_a_pilot_makes_tokens_in_its_own_name_alone(issuer: Issuer) -> None:
    checking = verifier(issuer)
    assert checking.verify(token_of("p1"), NOW).pilot_id == "p1"
    with pytest.raises(Rejected):
        checking.verify(forged("p1", pilot_id="p2"), NOW)


def test_a_token_with_more_or_other_claims_is_refused(issuer: Issuer) -> None:
    checking = verifier(issuer)
    assert checking.verify(forged("p1"), NOW).job_id == 7
    for claims in (
        {"rights": ["operator"]},
        {"kind": "user"},
        {"sub": "alice"},
        {"aud": "wms"},
        {"epoch": 0},
    ):
        with pytest.raises(Rejected):
            checking.verify(forged("p1", **claims), NOW)


@pytest.mark.parametrize(
    ("claims", "refusal"),
    [
        ({"iat": int(NOW) + 31}, "TOKEN_NOT_YET_VALID"),
        ({"exp": int(NOW) + LIFETIME_LIMIT + 31}, "TOKEN_INVALID"),
        ({"iat": int(NOW) + 9 * LIFETIME_LIMIT, "exp": int(NOW) + 10 * LIFETIME_LIMIT}, "TOKEN_INVALID"),
    ],
)
def test_its_times_are_judged_as_those_of_any_token(
    issuer: Issuer, claims: dict[str, int], refusal: str
) -> None:
    assert code(lambda: verifier(issuer).verify(forged("p1", **claims), NOW)) == refusal


def test_no_public_key_is_taken_for_a_secret(issuer: Issuer) -> None:
    public = issuer.keys["issuer"].private.public_key().public_numbers().x.to_bytes(32)
    claims = {"kind": "user", "sub": "alice", "iss": "wms", "aud": "wms", "exp": NOW + 9, "iat": NOW}
    token = jwt.encode(claims, public, "HS256", headers={"kid": issuer.keys["issuer"].kid})
    with pytest.raises(Rejected):
        verifier(issuer).verify(token, NOW)


def test_without_the_services_secrets_no_payload_is_let_in(issuer: Issuer) -> None:
    with pytest.raises(Rejected):
        verifier(issuer, keys=None).verify(token_of(), NOW)


def test_a_revoked_pilots_payloads_are_refused(issuer: Issuer) -> None:
    with pytest.raises(Rejected, match="revoked"):
        verifier(issuer, Revocation("pilot", "p1")).verify(token_of(), NOW)


def test_making_one_takes_microseconds() -> None:
    key = PilotKey("p1", KEYS.of_pilot("p1"))
    best = min(_seconds(key) for _ in range(5))
    assert best / 100 < 100e-6


def _seconds(key: PilotKey) -> float:
    begin = time.perf_counter()
    for number in range(100):
        payload_token(key, AttemptId(JobId(number), Epoch(1)), 3_600.0, NOW)
    return time.perf_counter() - begin
