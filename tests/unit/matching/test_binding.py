"""Pilots that are bound to one job: what a token allows, whatever a request says."""

import pytest

from tests.unit.matching.strategies import asks as wants
from tests.unit.matching.strategies import offers as at
from wms.ids import JobId
from wms.matching.binding import bound, bound_like, free, is_bound, is_reserved, restrained, tag_of
from wms.matching.clauses import fits
from wms.matching.grouping import Requirements
from wms.site import Resource


def misfit(wanted: Requirements, pilot: Resource) -> str:
    """Return the clause that fails; empty if none does."""
    found = fits(wanted, pilot)
    return found.clause if found else ""


SEVEN, EIGHT = JobId(7), JobId(8)


@pytest.mark.parametrize(
    ("tag", "reserved"), [("job:7", True), ("JOB:7", True), ("job:", True), ("jobs", False), ("gpu", False)]
)
def test_tags_of_jobs_are_reserved_in_any_case(tag, reserved):
    assert is_reserved(tag) == reserved


def test_only_the_bound_pilot_fits_a_bound_job_and_it_fits_nothing_else():
    alone, usual = bound(wants(), SEVEN), wants()
    pilot, other = restrained(at(), SEVEN), restrained(at(), EIGHT)
    assert fits(alone, pilot) is None
    assert misfit(alone, other) == "tags"
    assert misfit(alone, at()) == "tags"
    assert misfit(usual, pilot) == "required tags"


@pytest.mark.parametrize("tags", [("job:7",), ("JOB:7",), ("any",), ("Any", "job:7")])
def test_a_pilot_that_claims_the_tag_does_not_get_the_job(tags):
    hostile = restrained(at(tags=tags), None)
    assert misfit(bound(wants(), SEVEN), hostile) == "tags"


@pytest.mark.parametrize("required", [(), ("any",), ("job:8",), ("any", "job:8")])
def test_a_bound_pilot_cannot_get_rid_of_its_bond(required):
    pilot = restrained(at(tags=("any",), required_tags=required), SEVEN)
    assert fits(bound(wants(), SEVEN), pilot) is None
    assert misfit(wants(), pilot) == "required tags"
    assert misfit(bound(wants(), EIGHT), pilot) == "tags"


def test_a_bound_pilot_keeps_what_its_site_demands():
    pilot = restrained(at(tags=("gpu",), required_tags=("gpu",)), SEVEN)
    assert misfit(bound(wants(), SEVEN), pilot) == "required tags"
    assert fits(bound(wants(tags=("gpu",)), SEVEN), pilot) is None


def test_an_unbound_resource_without_such_tags_is_itself():
    resource = at(tags=("gpu",))
    assert restrained(resource, None) is resource


def test_bonds_are_found_taken_off_and_kept():
    alone = bound(wants(tags=("gpu",)), SEVEN)
    assert is_bound(alone)
    assert not is_bound(wants(tags=("gpu",)))
    assert alone.tags == ("gpu", tag_of(SEVEN))
    assert free(alone.tags) == ("gpu",)
    assert bound_like(wants(tags=("ssd",)), alone).tags == ("job:7", "ssd")
    assert bound_like(wants(), wants()) == wants()
