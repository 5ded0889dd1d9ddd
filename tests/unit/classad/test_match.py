"""Ads, expressions and matches: the references' own texts, scopes, limits, what is left, and why not."""

import pytest

from tests.unit.classad.references import read, value
from wms.classad.ad import Ad
from wms.classad.explain import failing
from wms.classad.expression import Expression
from wms.classad.match import matches, number, wants
from wms.classad.value import UNDEFINED


def station(rule: str, **counts: int) -> Ad:
    """An execution site's ad with a Requirements of the reference, in its words."""
    lines = "".join(f"{name} = {count}\n" for name, count in counts.items())
    return Ad.parse(read(rule) + read("samgrid-since.txt") + lines)


@pytest.mark.parametrize(("current", "wanted"), [(9, True), (10, False), (11, False)])
def test_samgrid_a_site_takes_jobs_below_its_limit(current: int, wanted) -> None:
    site = station("samgrid-simple.txt", CurrentJobs=current, MaxJobs=10)
    assert wants(site, Ad.parse("[]")) is wanted


@pytest.mark.parametrize(
    ("matched", "submitting", "wanted", "fails"),
    [
        (0, 0, True, ""),
        (4, 0, True, ""),
        (5, 0, False, "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs"),
        (3, 2, False, "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs"),
        (10, -9, False, "CurMatches < MaxJobs"),
    ],
)
def test_samgrid_jobs_matched_since_the_advertisement_count(
    matched: int, submitting: int, wanted, fails: str
) -> None:
    site = station(
        "samgrid-current.txt",
        CurrentJobs=90,
        CurMatches=90 + matched,
        MaxJobs=100,
        CurrentSubmittingJobs=submitting,
        MaxSubmittingJobs=5,
    )
    job = Ad.parse("[Owner = 1]")
    assert matches(job, site) is wanted
    assert [each.text for each in failing(site, job)] == ([fails] if fails else [])


def test_samgrid_an_ad_without_its_counts_takes_nothing() -> None:
    assert not wants(station("samgrid-simple.txt", MaxJobs=10), Ad.parse("[]"))


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        ('[VirtualOrganisation = "EGEE"]', True),
        ('[VirtualOrganisation = "cms"]', False),
        ('[VirtualOrganisation = "cms"; CertificateSubject = "VO:EGEE"]', True),
        ("[]", False),
    ],
)
def test_egee_the_ces_authorization_check_looks_at_the_job(ce: Ad, job: str, wanted) -> None:
    ad = Ad.of({**_attributes(Ad.parse(job)), "Requirements": Expression.parse("other.AuthorizationCheck")})
    assert matches(ad, ce) is wanted
    assert "authorizationcheck" in ce.open


def _attributes(ad: Ad) -> dict[str, Expression]:
    return {name: found for name in ad.names if (found := ad.expression(name)) is not None}


@pytest.mark.parametrize("scope", ["other", "TARGET", "Target", "OTHER"])
def test_the_other_ad_by_all_its_names(scope: str) -> None:
    assert value(f"{scope}.memory", "[Memory = 5]", "[Memory = 7]") == 5


@pytest.mark.parametrize("scope", ["my", "MY", "self", "Self"])
def test_its_own_ad_by_all_its_names(scope: str) -> None:
    assert value(f"{scope}.memory", "[Memory = 5]", "[Memory = 7]") == 7
    assert value(f"{scope}.memory", "[Memory = 5]") is UNDEFINED


def test_a_name_without_a_scope_is_its_own_ads_and_else_the_others() -> None:
    assert value("memory", "[Memory = 5]", "[Memory = 7]") == 7
    assert value("memory", "[Memory = 5]") == 5
    assert value("memory") is UNDEFINED


def test_an_attribute_of_the_other_is_looked_up_from_the_others_side() -> None:
    resource = "[Size = 10; Fits = Wish <= Size; Wish2 = other.Size]"
    assert value("other.Fits", resource, "[Wish = 9; Size = 1]") is True
    assert value("other.Wish2", resource, "[Size = 1]") == 1


@pytest.mark.parametrize(
    ("requirements", "wanted"),
    [
        ("true", True), ("false", False), ("undefined", False), ("error", False), ("1", False), ("2.5", False),
        ('"true"', False), ("{}", False), ("1 && 1", True), ("undefined || true", True), ("nowhere", False),
    ],
)  # fmt: skip
def test_only_true_is_true(requirements: str, wanted) -> None:
    assert matches(Ad.parse(f"[Requirements = {requirements}]"), Ad.parse("[]")) is wanted
    assert matches(Ad.parse("[]"), Ad.parse(f"[requirements = {requirements}]")) is wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("other.Cpus * 2", 8.0),
        ("true", 1.0),
        ("undefined", 0.0),
        ('"a"', 0.0),
        ('real("NaN")', 0.0),
        ("-1.5", -1.5),
    ],
)
def test_rank_is_a_number_whatever_is_written(text: str, expected: float) -> None:
    assert number(Expression.parse(text), Ad.parse("[Cpus = 4]")) == expected


def test_special_values_are_neither_true_nor_false() -> None:
    with pytest.raises(TypeError, match="is True"):
        bool(UNDEFINED)
