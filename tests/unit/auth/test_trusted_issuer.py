"""The configuration of trusted issuers: which addresses, and which rules."""

import msgspec
import pytest

from tests.unit.auth.foreign_issuer import TRUSTED
from wms.auth.trusted_issuer import IssuerRule, TrustedIssuer, address_fault


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://iam.example.org/", ""),
        ("http://127.0.0.1:4000", ""),
        ("http://iam.example.org/", "must begin with https://"),
        ("ftp://iam.example.org/", "must begin with https://"),
        ("https://user@iam.example.org/", "no user"),
        ("https://iam.example.org/?a=b", "no query"),
        ("https://iam.example.org/#a", "no address has"),
        ("https://iam.example.org/a b", "no address has"),
        ("https://", "must name a host"),
        ("https://host:many/", "is no address"),
    ],
)
def test_an_address_is_encrypted_and_plain(url: str, why: str) -> None:
    found = address_fault(url)
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://iam.example.org/jwk", True),
        ("https://keys.example.org/jwk", True),
        ("https://elsewhere.example.org/jwk", False),
        ("http://127.0.0.1/jwk", False),
    ],
)
def test_keys_come_from_the_issuers_host_or_a_named_one(url: str, *, may: bool) -> None:
    issuer = msgspec.structs.replace(TRUSTED, key_hosts=("keys.example.org",))
    assert (not issuer.keys_fault(url)) is may


@pytest.mark.parametrize(
    "said",
    [
        {"url": "http://far.example.org"},
        {"trusted_seconds": 10.0},
        {"audiences": []},
        {"rules": []},
        {"rules": [{"vo": "atlas", "group": "all"}]},
        {"rules": [{"vo": "atlas", "group": "g", "groups": ["/a"], "rights": ["generic_pilot"]}]},
        {"rules": [{"vo": "atlas", "group": "g", "groups": ["/a"], "rights": ["king"]}]},
        {"unknown": 1},
    ],
)
def test_a_table_with_a_fault_is_refused(said: dict[str, object]) -> None:
    good = {"url": "https://a.example.org", "rules": [{"groups": ["/a"], "vo": "a", "group": "g"}]}
    msgspec.convert(good, TrustedIssuer)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good | said, TrustedIssuer)


def test_a_rule_fits_only_if_each_condition_holds() -> None:
    rule = IssuerRule(groups=("/a", "/b"), scopes=("x",), claims={"role": "chief"}, vo="v", group="g")
    both, scopes = frozenset({"/a", "/b", "/c"}), frozenset({"x", "y"})
    assert rule.fits(both, scopes, {"role": "chief"})
    assert rule.fits(both, scopes, {"role": ["clerk", "chief"]})
    assert not rule.fits(frozenset({"/a"}), scopes, {"role": "chief"})
    assert not rule.fits(both, frozenset(), {"role": "chief"})
    assert not rule.fits(both, scopes, {"role": "chiefs"})
    assert not rule.fits(both, scopes, {})
