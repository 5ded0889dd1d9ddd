"""How many matches an ad lets pass until the next: SAM-Grid's rule, held against its own words, and rules of sites' own."""

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec.structs import replace

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate
from wms.errors import Rejected
from wms.matching.ad_limits import MOST, allowance, check_requirements, notice
from wms.site import ComputingElement

SIMPLE = "( CurrentJobs < MaxJobs )"
CURRENT = "( CurMatches < MaxJobs ) && (JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs) < MaxSubmittingJobs"
"""The two rules of SAM-Grid's paper, word for word."""

few = st.integers(0, 30)


def element(**said: int | str) -> ComputingElement:
    return ComputingElement(site="A", ce="ce", slots=10, max_cpu_time=1, **said)  # type: ignore[arg-type]


def by_its_words(rule: str, max_jobs: int, max_submitting: int, jobs: int, submitting: int) -> int:
    """Match one by one, as the paper's match maker does, until the expression is not true any more."""
    matched = 0
    while True:
        ad = Ad.of(
            {
                "MaxJobs": max_jobs,
                "MaxSubmittingJobs": max_submitting,
                "CurrentJobs": jobs,
                "CurrentSubmittingJobs": submitting,
                "CurMatches": jobs + matched,
                "JobsMatchedSinceLastAdvertisement": matched,
            }
        )
        if evaluate(Expression.parse(rule), Ad(()), ad) is not True:
            return matched
        matched += 1


@given(st.integers(1, 30), st.integers(1, 30), few, few)
def test_what_is_reckoned_is_what_the_papers_rule_lets_pass(
    max_jobs: int, max_submitting: int, jobs: int, submitting: int
) -> None:
    said = element(
        max_jobs=max_jobs,
        max_submitting_jobs=max_submitting,
        current_jobs=jobs,
        current_submitting_jobs=submitting,
    )
    expected = by_its_words(CURRENT, max_jobs, max_submitting, jobs, submitting)
    assert allowance(said) == expected
    own = replace(said, rule=f"{CURRENT} && CurMatches < 1000")
    assert allowance(own) == expected, "a rule of the site's own is evaluated"


@pytest.mark.parametrize(("jobs", "allowed"), [(9, MOST), (10, 0), (11, 0)])
def test_the_simple_rule_lets_all_pass_or_nothing(jobs: int, allowed: int) -> None:
    assert allowance(element(max_jobs=10, current_jobs=jobs, rule=SIMPLE)) == allowed


def test_no_limit_stated_is_none() -> None:
    assert allowance(element()) is None


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ("JobsMatchedSinceLastAdvertisement < 3", 3),
        ("CurMatches * 2 < MaxJobs && other.Owner == 1", 0),
        ("CurMatches * 2 < MaxJobs || other.Urgent", 2),
        ("JobsMatchedSinceLastAdvertisement != 5", 5),
        ("FreeDisk - CurMatches * 10 > 0", 9),
        ("MY.CurMatches < 6 && CurrentSubmittingJobs == 0", 4),
        ("CurMatches < MaxSubmittingJobs", 0),
        ("CurMatches", 0),
    ],
)
def test_a_rule_of_the_sites_own(rule: str, allowed: int) -> None:
    """It lets pass until it is not true for the first time; what it looks at and nobody says is undefined."""
    said = element(max_jobs=7, current_jobs=2, rule=rule)
    assert allowance(said, {"FreeDisk": 120 - 10}) == allowed


def test_a_rule_that_is_no_expression_is_refused() -> None:
    with pytest.raises(Rejected, match="rule"):
        allowance(element(rule="CurMatches <"))


def test_words_with_numbers() -> None:
    said = element(max_jobs=40, max_submitting_jobs=10, current_jobs=28, current_submitting_jobs=1)
    assert notice(said, 9, 8) is None
    assert notice(said, None, 8) is None
    told = notice(said, 9, 9)
    assert told is not None
    assert told.text() == "delay: 10 of 10 jobs being submitted (MaxSubmittingJobs)"
    full = notice(element(max_jobs=40, current_jobs=28), 12, 12, "pilots")
    assert full is not None
    assert full.text() == "suppress: 40 of 40 pilots (MaxJobs)"
    own = notice(element(rule="x"), 3, 3)
    assert own is not None
    assert own.text() == "suppress: 3 jobs since its ad, whose rule lets no more come"


def test_a_job_that_ad_and_matches_both_count_is_not_counted_twice() -> None:
    """Idle pilots are jobs of the ad, and have taken the matches."""
    told = notice(element(max_jobs=5, current_jobs=3), 2, 3)
    assert told is not None
    assert told.text() == "suppress: 3 by its ad and 3 since, of 5 jobs (MaxJobs)"


@pytest.mark.parametrize(
    "requirements",
    ["", 'other.Owner != "mallory"', 'other.Note != "CurMatches < MaxJobs"', "other.MaxJobs > 3"],
)
def test_requirements_of_an_ad_that_are_about_jobs_are_taken(requirements: str) -> None:
    check_requirements(requirements)


@pytest.mark.parametrize(
    "requirements",
    ["CurMatches < MaxJobs", "other.Urgent || my.CurrentJobs < 3", "jobsmatchedsincelastadvertisement < 3"],
)
def test_requirements_of_an_ad_that_look_at_counts_are_refused(requirements: str) -> None:
    with pytest.raises(Rejected, match="counts of jobs"):
        check_requirements(requirements)
