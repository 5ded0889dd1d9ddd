"""Claims by the profiles, and the principals that they make."""

from typing import Any

import msgspec
import pytest

from tests.unit.auth.foreign_issuer import MEMBERS, PRODUCTION, TRUSTED
from tests.unit.auth.issuer import NOW, code
from wms.auth import foreign_claims
from wms.auth.foreign_claims import ForeignClaims
from wms.auth.policy import ON_JOBS, allowed
from wms.auth.principal import Principal, Right
from wms.auth.trusted_issuer import IssuerRule, TrustedIssuer

WLCG: dict[str, Any] = {
    "iss": TRUSTED.url, "sub": "a1b2", "aud": "wms", "iat": NOW, "exp": NOW + 60, "wlcg.ver": "1.0",
    "wlcg.groups": ["/atlas"],
}  # fmt: skip


def bearer(issuer: Any = TRUSTED, **changed: Any) -> Principal:
    body = WLCG | changed
    return foreign_claims.principal(msgspec.convert(body, ForeignClaims), issuer, body, b"signed")


def of_profile(profile: Any, **rule: Any) -> TrustedIssuer:
    rules = (IssuerRule(vo="atlas", group="g", **rule),)
    return msgspec.structs.replace(TRUSTED, profile=profile, rules=rules)


def test_the_identity_is_issuer_and_subject() -> None:
    assert bearer().owner == "https://iam.example.org/#a1b2"
    assert bearer().kind == "user"
    assert bearer(msgspec.structs.replace(TRUSTED, url="https://other.example.org/")).owner != bearer().owner


def test_the_first_rule_that_fits_decides() -> None:
    assert bearer().group == MEMBERS.group
    assert bearer(**{"wlcg.groups": ["/atlas", "/atlas/production"]}).group == PRODUCTION.group
    assert code(lambda: bearer(**{"wlcg.groups": ["/cms"]})) == "TOKEN_INVALID"


def test_rights_come_from_rules_alone() -> None:
    assert bearer(rights=["operator"], kind="service", vo="cms").rights == frozenset()
    chief = of_profile("plain", claims={"role": "chief"}, rights=(Right.OPERATOR,))
    assert bearer(chief, role="chief").rights == {Right.OPERATOR}


@pytest.mark.parametrize("aud", ["wms", ["x", "wms"]])
def test_a_token_is_for_one_of_the_audiences(aud: Any) -> None:
    assert bearer(aud=aud).vo == "atlas"


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "https://wlcg.cern.ch/jwt/v1/any"},
        {"aud": []},
        {"aud": ["wmsx"]},
        {"wlcg.ver": "2.0"},
        {"wlcg.ver": ""},
        {"sub": "x" * 255},
        {"sub": "a\nb"},
    ],
)
def test_other_tokens_are_refused(changed: dict[str, Any]) -> None:
    assert code(lambda: bearer(**changed)) == "TOKEN_INVALID"


def test_any_audience_is_accepted_where_the_table_says_so() -> None:
    anyone = "https://wlcg.cern.ch/jwt/v1/any"
    assert bearer(msgspec.structs.replace(TRUSTED, audiences=(anyone,)), aud=anyone).vo == "atlas"


def test_capabilities_limit_a_token_to_their_actions() -> None:
    reader = bearer(scope="openid compute.read")
    mine = (reader.owner, reader.group, reader.vo)
    assert allowed(reader, "see", *mine)
    assert {each for each in (*ON_JOBS, "submit", "order_pilots") if allowed(reader, each, *mine)} == {
        "see",
        "see_detail",
        "fetch_output",
    }
    assert allowed(bearer(scope="compute.create"), "submit", *mine)
    assert not allowed(bearer(scope="compute.create"), "kill", *mine)
    assert allowed(bearer(scope="compute.cancel"), "kill", *mine)
    assert bearer(scope="openid storage.read:/").actions is None


def test_a_scitoken_permits_its_capabilities_alone() -> None:
    scitokens = of_profile("scitokens", claims={"sub": "a1b2"})
    assert bearer(scitokens, ver="scitoken:2.0", scope=["compute.create"]).actions == frozenset(
        {"submit", "order_pilots"}
    )
    assert bearer(scitokens, ver="scitoken:2.0").actions == frozenset()
    assert code(lambda: bearer(scitokens, ver="scitoken:1.0")) == "TOKEN_INVALID"
    assert code(lambda: bearer(scitokens)) == "TOKEN_INVALID"


def test_a_token_without_a_name_is_named_by_what_is_signed() -> None:
    assert bearer(jti="t-1").token_id == "t-1"
    assert len(bearer().token_id) == 64


def test_a_plain_provider_names_groups_in_groups() -> None:
    plain = of_profile("plain", groups=("staff",))
    assert bearer(plain, groups=["staff"]).vo == "atlas"
    assert code(lambda: bearer(plain, **{"wlcg.groups": ["staff"]})) == "TOKEN_INVALID"
