"""Notices: suppress, delay, avoid, by an element's ad, its health, and what became of its pilots."""

from typing import Any, get_args

import pytest

from tests.unit.why.elements import element
from wms.ids import CeId
from wms.provisioning.health import AVOIDED, ElementHealth, State
from wms.provisioning.known_elements import PilotLosses
from wms.why.notices import FEW, SinceLastAd, avoidance, notices, shut_out, why_shut

HEALTHY, NONE_LOST = ElementHealth(), PilotLosses()


def words(since: SinceLastAd = SinceLastAd(), *, fresh: bool = True, **fields: Any) -> list[str]:  # noqa: B008 - a value
    return [each.text() for each in notices(element(**fields), since, HEALTHY, NONE_LOST, fresh=fresh)]


def test_an_element_without_limits_has_no_notices() -> None:
    assert words() == []
    assert words(fresh=False) == []


def test_an_element_whose_limit_is_reached_suppresses_until_its_next_ad() -> None:
    full: dict[str, Any] = {"max_jobs": 10, "current_jobs": 8}
    assert words(SinceLastAd(allowed=2, matched=1), **full) == []
    assert words(SinceLastAd(allowed=2, matched=2), **full) == ["suppress: 10 of 10 jobs (MaxJobs)"]
    assert words(SinceLastAd(allowed=2, matched=2), fresh=False, **full) == [
        "suppress: nothing comes before its next ad"
    ]


def test_too_many_jobs_that_are_being_submitted_delay() -> None:
    (said,) = words(SinceLastAd(allowed=1, matched=1), max_submitting_jobs=3, current_submitting_jobs=2)
    assert said == "delay: 3 of 3 jobs being submitted (MaxSubmittingJobs)"


def test_jobs_and_pilots_are_counted_apart() -> None:
    full: dict[str, Any] = {"max_jobs": 10, "current_jobs": 8}
    assert len(words(SinceLastAd(allowed=2, matched=2, sent=1), **full)) == 1
    assert len(words(SinceLastAd(allowed=2, matched=2, sent=2), **full)) == 2


def test_our_idle_pilots_are_not_counted_twice() -> None:
    """One that gets a job is the same job in the source's count."""
    full: dict[str, Any] = {"max_jobs": 10, "current_jobs": 8}
    assert words(SinceLastAd(allowed=2, matched=4), **full) == [
        "suppress: 8 by its ad and 4 since, of 10 jobs (MaxJobs)"
    ]
    assert words(SinceLastAd(allowed=2, matched=4, idle=2), **full) == ["suppress: 10 of 10 jobs (MaxJobs)"]


@pytest.mark.parametrize("state", get_args(State))
def test_who_is_not_healthy_is_to_be_avoided(state: State) -> None:
    found = avoidance(ElementHealth(state=state, reason="why"), NONE_LOST)
    assert (found is None) == (state == "healthy")


@pytest.mark.parametrize(
    ("ended", "lost", "avoided"),
    [
        (FEW, FEW, True),
        (FEW - 1, FEW - 1, False),
        (2 * FEW, FEW, False),
        (2 * FEW - 1, FEW, True),
        (1_000, 501, True),
    ],
)
def test_elements_where_most_pilots_die_unseen_are_to_be_avoided(
    ended: int, lost: int, *, avoided: bool
) -> None:
    found = avoidance(HEALTHY, PilotLosses(ended=ended, lost=lost))
    assert (found is not None) == avoided
    if found:
        assert f"{lost:,} of {ended:,}" in found.text()


def test_what_is_shut_says_which_place_and_why() -> None:
    known = {
        CeId("A", ""): ElementHealth(state="banned", reason="upgrade", said_by="oz"),
        CeId("B", "x"): ElementHealth(state="quarantined", reason="eats jobs"),
        CeId("B", "y"): ElementHealth(state="backing-off", reason="away"),
    }
    shut = shut_out(known)
    assert set(shut) == {place for place, health in known.items() if health.state in AVOIDED}
    assert shut[CeId("A", "")].startswith("A: avoid")
    assert shut[CeId("B", "x")].startswith("B/x: avoid")
    assert why_shut(shut, "A", "anything") == shut[CeId("A", "")]
    assert why_shut(shut, "B", "x") == shut[CeId("B", "x")]
    assert why_shut(shut, "B", "y") is None
