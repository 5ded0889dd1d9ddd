"""A site's own rule: which terms of its requirements are about counts, and that a job comes exactly while all are true."""

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.advertiser.site_rule import USUAL, with_rule
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate
from wms.errors import Rejected
from wms.matching.ad_limits import allowance
from wms.site import ComputingElement

OF_COUNTS = (
    "CurMatches < MaxJobs",
    "(curmatches<MAXJOBS)",
    "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs",
    "JobsMatchedSinceLastAdvertisement < 4",
    "CurrentJobs <= MaxJobs",
    "(MY.CurMatches * 2 < 21 || FreeDisk == 1)",
    "(CurMatches < 9 ? FreeDisk > 2 : false)",
    "CurMatches < FreeDisk",
)
OF_JOBS = (
    'other.Owner != "mallory"',
    "(other.Urgent || other.Priority > 3)",
    'other.Name != "CurMatches"',
    "other.CurMatches =?= undefined",
    "FreeDisk > 0",
)
few = st.integers(0, 12)


def element(**said: Any) -> ComputingElement:
    return ComputingElement(site="A", ce="ce", slots=10, max_cpu_time=1, **said)


def let_pass(terms: Sequence[str], said: dict[str, int]) -> int:
    """Let jobs come one by one, as SAM-Grid's match maker does, until not all terms are true."""
    parsed = [Expression.parse(each) for each in terms]
    for matched in count():
        since = {
            "JobsMatchedSinceLastAdvertisement": matched,
            "CurMatches": said["CurrentJobs"] + matched,
        }
        if matched > 30 or not all(evaluate(each, Ad(()), Ad.of(said | since)) is True for each in parsed):
            return matched
    raise AssertionError


@given(
    few,
    few,
    few,
    few,
    few,
    st.lists(st.sampled_from(OF_COUNTS)),
    st.lists(st.sampled_from(OF_JOBS)),
    st.randoms(),
)
def test_jobs_come_while_each_term_and_each_configured_limit_holds(
    max_jobs: int, max_submitting: int, jobs: int, submitting: int, disk: int, of_counts: list[str], of_jobs: list[str],
    rng: Random,
) -> None:  # fmt: skip
    site = element(
        max_jobs=max_jobs,
        max_submitting_jobs=max_submitting,
        current_jobs=jobs,
        current_submitting_jobs=submitting,
    )
    written = [*of_counts, *of_jobs]
    rng.shuffle(written)
    found, rest = with_rule(site, {"FreeDisk": disk}, " && ".join(written))
    limits = {"MaxJobs": max_jobs, "MaxSubmittingJobs": max_submitting}
    stated = {name: limit for name, limit in limits.items() if limit}
    configured = [USUAL[field] for field in USUAL if getattr(site, field)]
    said = stated | {"CurrentJobs": jobs, "CurrentSubmittingJobs": submitting, "FreeDisk": disk}
    allowed = allowance(found, {"FreeDisk": disk})
    if allowed is None:
        assert not of_counts
        assert not configured
    else:
        assert min(allowed, 31) == let_pass([*of_counts, *configured], said)
    about_jobs = " && ".join(each for each in written if each in OF_JOBS)
    assert rest == about_jobs or Expression.parse(rest) == Expression.parse(about_jobs)


def test_the_usual_rule_needs_no_text() -> None:
    both = element(max_jobs=2, max_submitting_jobs=1)
    assert with_rule(both, {}, " && ".join(USUAL.values())) == (both, "")
    assert with_rule(both, {}, "(curmatches<MAXJOBS)") == (both, ""), (
        "the other limit is configured, and holds besides"
    )


def test_a_limit_that_attributes_alone_say_is_the_rules_to_look_at() -> None:
    attributes = {"maxjobs": 7, "CurrentJobs": 3}
    usual, _ = with_rule(element(), attributes, "CurMatches < MaxJobs")
    assert (usual.rule, allowance(usual, attributes)) == ("", 4)
    simple, _ = with_rule(element(), attributes, "CurrentJobs < MaxJobs")
    assert (simple.max_jobs, simple.rule) == (7, "CurrentJobs < MaxJobs")


@pytest.mark.parametrize("value", [True, 0, -1, 2.0, "many"])
def test_what_is_no_number_of_jobs_is_no_limit(value: object) -> None:
    assert with_rule(element(), {"MaxJobs": value}, "other.Urgent") == (element(), "other.Urgent")


def test_a_configured_limit_goes_before_an_attribute() -> None:
    assert with_rule(element(max_jobs=2), {"MaxJobs": 7}, "") == (element(max_jobs=2), "")


def test_requirements_without_counts_stay_as_they_are_written() -> None:
    assert with_rule(element(), {}, "other.A  &&(B)") == (element(), "other.A  &&(B)")


def test_a_term_is_in_the_rule_once() -> None:
    found, _ = with_rule(element(max_jobs=2), {}, "CurMatches < 5 && CurMatches < MaxJobs && curmatches < 5")
    assert found.rule == "curmatches < 5 && CurMatches < MaxJobs"


def test_requirements_that_are_no_expression_are_refused() -> None:
    with pytest.raises(Rejected, match="requirements"):
        with_rule(element(), {}, "CurMatches <")
