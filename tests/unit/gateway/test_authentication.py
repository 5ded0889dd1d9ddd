"""Who is let in, and how often."""

from pathlib import Path

import pytest
import structlog
from structlog.testing import LogCapture

from services.gateway.authentication import Authentication, address_of, bearer
from services.gateway.config import RequestLimits
from services.gateway.problem import TooMany
from tests.unit.gateway.requested import a_request
from wms.auth.keys import generate_keys, load_key
from wms.auth.revocations import Revocation, Revocations
from wms.auth.token import Claims, Verifier, mint
from wms.errors import Rejected
from wms.runtime import clock


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("keys") / "keys"
    generate_keys(place)
    return place


def token(keys: Path, owner: str) -> str:
    claims = Claims(kind="user", owner=owner, group="users", vo="atlas")
    return mint(load_key(keys / "issuer.pem"), claims, 3600, clock.timestamp())


def authentication(keys: Path, **limits: float) -> Authentication:
    return Authentication(Verifier.from_file(keys / "jwks.json"), RequestLimits(**limits))


def test_a_valid_token_is_let_in_as_its_owner(keys: Path) -> None:
    credential, principal = authentication(keys).admit(
        a_request(authorization=f"Bearer {token(keys, 'alice')}")
    )
    assert (credential.owner, principal.owner, principal.vo) == ("alice", "alice", "atlas")


@pytest.mark.parametrize(
    ("limits", "whose"),
    [
        ({"token_per_second": 0.01, "token_burst": 1.0}, "this token"),
        ({"owner_per_second": 0.01, "owner_burst": 1.0}, "this user"),
    ],
)
def test_who_asks_too_often_is_told_when_to_come_again(
    keys: Path, limits: dict[str, float], whose: str
) -> None:
    checked = authentication(keys, **limits)
    request = a_request(authorization=f"Bearer {token(keys, 'alice')}")
    checked.admit(request)
    with pytest.raises(TooMany, match=whose) as refused:
        checked.admit(request)
    assert 0 < refused.value.seconds <= 100
    assert checked.refused == 1


def test_one_user_does_not_use_up_the_budget_of_another(keys: Path) -> None:
    checked = authentication(keys, owner_per_second=0.01, owner_burst=1.0)
    checked.admit(a_request(authorization=f"Bearer {token(keys, 'alice')}"))
    checked.admit(a_request(authorization=f"Bearer {token(keys, 'bob')}"))


def test_forged_tokens_use_up_the_budget_of_their_address(keys: Path) -> None:
    checked = authentication(keys, address_per_second=0.01, address_burst=3.0)
    for _ in range(3):
        with pytest.raises(Rejected, match="TOKEN_INVALID"):
            checked.admit(a_request(authorization="Bearer a.b.c"))
    with pytest.raises(TooMany):
        checked.admit(a_request(authorization="Bearer a.b.c"))


def test_an_address_that_asks_too_often_keeps_nobody_out_whose_token_was_valid(keys: Path) -> None:
    checked = authentication(keys, address_per_second=0.01, address_burst=2.0)
    known = a_request(authorization=f"Bearer {token(keys, 'alice')}")
    checked.admit(known)
    with pytest.raises(Rejected, match="TOKEN_INVALID"):
        checked.admit(a_request(authorization="Bearer a.b.c"))
    checked.admit(known)
    with pytest.raises(TooMany, match="this address") as refused:
        checked.admit(a_request(authorization=f"Bearer {token(keys, 'bob')}"))
    assert 0 < refused.value.seconds <= 100


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic eA==", "token"])
def test_a_header_without_a_token_is_told_so(header: str) -> None:
    with pytest.raises(Rejected, match="TOKEN_MISSING"):
        bearer(header)


def test_a_network_of_ipv6_is_one_address() -> None:
    one, two = a_request(client="2001:db8:1:2::5"), a_request(client="2001:db8:1:2:9::6")
    assert address_of(one) == address_of(two) != address_of(a_request(client="2001:db8:1:3::5"))
    assert address_of(a_request(client="192.0.2.7")) == "192.0.2.7"


def test_a_revoked_token_is_logged_once_a_minute_and_a_forged_one_never(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revocations = Revocations()
    verifier = Verifier.from_file(keys / "jwks.json", revocations=revocations)
    checked = Authentication(verifier, RequestLimits())
    stolen = token(keys, "alice")
    revocations.replace({Revocation("subject", "alice")})
    # A logger of its own, as other tests of this process set the level of all others.
    logged = LogCapture()
    every_level = structlog.make_filtering_bound_logger(0)
    log = structlog.wrap_logger(structlog.ReturnLogger(), processors=[logged], wrapper_class=every_level)
    monkeypatch.setattr("services.gateway.authentication.log", log)
    for each in (stolen, stolen, stolen[:-8] + "AAAAAAAA"):
        with pytest.raises(Rejected, match="TOKEN_"):
            checked.admit(a_request(authorization=f"Bearer {each}"))
    (line,) = logged.entries
    assert (line["owner"], line["code"], line["address"]) == ("alice", "TOKEN_REVOKED", "192.0.2.7")
    assert stolen not in str(line)
