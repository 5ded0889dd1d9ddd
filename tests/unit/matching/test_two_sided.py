"""The two-sided match of one job and one resource: what each requires, likes, and misses in the other."""

from typing import Any

import pytest

from tests.unit.matching.strategies import asks, offers
from wms.classad.expression import Expression
from wms.matching.ads import advertised, job_attributes
from wms.matching.grouping import Requirements
from wms.matching.two_sided import (
    asked,
    job_rank,
    job_says,
    job_wants,
    site_says,
    site_wants,
    terms_of,
    without_failing,
)
from wms.site import Resource, with_ad


def wants(text: str, **fields: Any) -> Requirements:
    return asks(requirements=Expression.parse(text).text, **fields)


def place(
    *, forwards: tuple[str, ...] | None = None, requirements: str = "", rank: str = "", **said: Any
) -> Resource:
    return with_ad(offers(site="A"), advertised(said, {}, requirements, rank), forwards)


def test_a_job_without_requirements_takes_any_resource() -> None:
    assert asked(asks()) is None
    assert job_wants(None, place())
    assert job_says(None, place()) == ""
    assert without_failing(asks(), place()) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("other.a > 1", True), ("other.a > 2", False), ("other.missing > 1", False), ("other.a", False)],
)
def test_requirements_are_met_where_they_are_true_and_a_number_is_not(text: str, *, wanted: bool) -> None:
    assert job_wants(asked(wants(text)), place(a=2)) == wanted


def test_a_job_compares_with_what_it_says_of_itself() -> None:
    picky = wants("other.a > my.Needs && my.Owner == other.friend", attributes="[ Needs = 1 ]", owner="ann")
    assert job_wants(asked(picky), place(a=2, friend="ann"))
    assert not job_wants(asked(picky), place(a=1, friend="ann"))
    assert not job_wants(asked(picky), place(a=2, friend="bob"))


def test_what_a_site_forwards_could_be_true_of_a_pilot_that_is_yet_to_be_sent() -> None:
    part = asked(wants("other.a > 1 && other.b > 1"))
    assert job_wants(part, place(forwards=("a",), b=2))
    assert not job_wants(part, place(forwards=("a",), b=1)), "what it advertises it will not change"
    assert not job_wants(part, place(b=2)), "a pilot that is there is as it is"


def test_a_site_takes_the_jobs_that_its_requirements_are_true_of() -> None:
    at = place(requirements='other.Owner == "ann" && other.NumberOfProcessors <= my.most', most=2)
    assert site_wants(job_attributes(asks(owner="ann")), at)
    assert not site_wants(job_attributes(asks(owner="bob")), at)
    assert not site_wants(job_attributes(asks(owner="ann", tags=("4Processors",))), at)
    assert site_wants(job_attributes(asks(owner="bob")), place(most=2)), "who requires nothing takes all"


def test_a_site_that_requires_by_what_it_forwards_could_take_a_job() -> None:
    rule = "other.own <= my.a"
    job = job_attributes(asks(attributes="[ own = 3 ]"))
    assert not site_wants(job, place(requirements=rule, a=1))
    assert site_wants(job, place(requirements=rule, a=1, forwards=("a",)))


def test_failing_conjuncts_are_named_with_what_they_saw() -> None:
    said = job_says(asked(wants("other.a > 1 && other.b > 1 && other.c > 1")), place(a=2, b=0))
    assert (
        said == "other.b > 1 is false where other.b = 0; other.c > 1 is undefined where other.c = undefined"
    )


def test_of_many_failing_conjuncts_the_first_are_named_and_the_others_counted() -> None:
    said = job_says(asked(wants(" && ".join(f"other.x{n} == {n}" for n in range(5)))), place())
    assert said.count(";") == 3
    assert said.endswith("; and 2 more")


def test_the_sites_side_names_its_own_conjuncts() -> None:
    at = place(requirements='other.Owner == "ann" && other.VirtualOrganisation == "v"')
    assert "bob" in site_says(job_attributes(asks(owner="bob")), at)
    assert "virtualorganisation" not in site_says(job_attributes(asks(owner="bob")), at).lower()
    assert site_says(job_attributes(asks(owner="bob")), place()) == ""


def test_without_what_fails_a_job_would_match() -> None:
    wanted = wants("other.a > 1 && other.b > 1")
    eased = without_failing(wanted, place(a=2))
    assert eased is not None
    assert terms_of(eased) == ["other.a > 1"]
    assert job_wants(asked(eased), place(a=2))
    assert without_failing(wanted, place(a=2, b=2)) is None
    nothing = without_failing(wanted, place())
    assert nothing is not None
    assert nothing.requirements == ""


def test_the_terms_of_requirements_are_canonical_texts() -> None:
    assert terms_of(asks()) == []
    assert terms_of(wants("other.a>1&&(other.b||other.c)")) == ["other.a > 1", "other.b || other.c"]


@pytest.mark.parametrize(
    ("rank", "number"),
    [
        ("other.a", 7.0),
        ("-other.a", -7.0),
        ("other.a > 1", 1.0),
        ("other.missing", 0.0),
        ('"best"', 0.0),
        ("0.0 / 0.0", 0.0),
    ],
)
def test_a_rank_is_a_number_and_what_is_none_counts_as_nothing(rank: str, number: float) -> None:
    assert job_rank(asks(rank=Expression.parse(rank).text), place(a=7)) == number


def test_who_has_no_rank_does_not_care() -> None:
    assert job_rank(asks(), place(a=7)) is None
