"""What the broker does next with a job, decided without database, clock or messages."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.resource_broker.failed_placements import FailedPlacement
from services.resource_broker.next_step import (
    HeldAgreement,
    NextStep,
    StepFacts,
    StepTerms,
    next_step,
)
from wms.broker.start_window import StartWindow
from wms.ids import CeId, JobId
from wms.messages.replies import RankedElement

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TERMS = StepTerms(sites_asked=2, decision_seconds=10.0, look_again_seconds=5.0, most_attempts=3)
A, B, C = CeId("A", "ce"), CeId("B", "ce"), CeId("C", "ce")


def facts(**more: Any) -> StepFacts:
    usual: dict[str, Any] = {
        "job_id": JobId(7),
        "seq": 2,
        "phase": "Choosing",
        "round": 0,
        "is_checking": True,
        "window": StartWindow(NOW),
        "wants_reservation": True,
    }
    return StepFacts(**usual | more)


class Elements:
    """Elements with the seconds that the job takes at each; a reservation starts it at its own time."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds

    def assess(
        self, starts: Mapping[CeId, datetime] | None, tried: Collection[CeId]
    ) -> tuple[RankedElement, ...]:
        times = {CeId(site, "ce"): each for site, each in self.seconds.items()}
        times |= {place: (start - NOW).total_seconds() for place, start in (starts or {}).items()}
        there = sorted((each, place) for place, each in times.items() if place not in tried)
        return tuple(
            RankedElement(site=place.site, ce=place.ce, rank=n, seconds=each)
            for n, (each, place) in enumerate(there, start=1)
        )


def step(
    given: StepFacts, elements: Elements, reservable: Collection[CeId] = (), now: datetime = NOW
) -> NextStep:
    return next_step(given, elements.assess, reservable, now, TERMS)


def chosen(found: NextStep) -> str:
    return found.place.element.site if found.place else ""


def held(name: str, place: CeId, state: str, seconds: float | None = None) -> HeldAgreement:
    start = None if seconds is None else NOW + timedelta(seconds=seconds)
    return HeldAgreement(agreement_id=name, place=place, state=state, start_at=start, reservation=f"r-{name}")


# --- choosing -----------------------------------------------------------------------------------------------------


def test_a_job_is_placed_at_the_best_element() -> None:
    found = step(facts(), Elements(A=30, B=10, C=20))
    assert (found.phase, chosen(found)) == ("Placed", "B")
    assert [each.site for each in found.ranking or ()] == ["B", "C", "A"]


def test_a_job_that_fits_nowhere_is_looked_at_again_with_the_reason() -> None:
    found = step(facts(), Elements())
    assert (found.phase, found.reason, found.seconds) == ("Choosing", "NO_CANDIDATE", 5.0)


def test_the_next_best_follows_an_element_that_failed() -> None:
    failed = (FailedPlacement(B, "REFUSED: no room"),)
    assert chosen(step(facts(failed=failed), Elements(A=30, B=10, C=20))) == "C"


def test_an_element_that_never_knew_the_pilot_is_chosen_again() -> None:
    failed = (FailedPlacement(B, "NOT_ARRIVED", again_at=NOW),)
    assert chosen(step(facts(failed=failed), Elements(A=30, B=10))) == "B"


def test_a_job_waits_for_an_element_that_could_not_be_reached() -> None:
    failed = (FailedPlacement(A, "UNREACHABLE", again_at=NOW + timedelta(seconds=60)),) * 3
    assert step(facts(failed=failed), Elements(A=30)).reason == "NO_CANDIDATE"
    later = step(facts(failed=failed), Elements(A=30), now=NOW + timedelta(seconds=60))
    assert chosen(later) == "A", "these failures are none of the job's attempts"


def test_a_job_whose_elements_have_all_failed_is_held_and_each_attempt_named() -> None:
    failed = (FailedPlacement(A, "REFUSED: no room"), FailedPlacement(B, "TOO_LATE: too late"))
    found = step(facts(failed=failed), Elements(A=30, B=10))
    assert (found.end, found.reason) == ("hold", "NOT_PLACED")
    assert "A/ce: REFUSED: no room; B/ce: TOO_LATE" in found.text


def test_a_job_is_tried_so_many_times_and_no_more() -> None:
    failed = (FailedPlacement(A, "x"), FailedPlacement(B, "y"), FailedPlacement(A, "z"))
    found = step(facts(failed=failed), Elements(A=1, B=2, C=3))
    assert (found.end, found.place) == ("hold", None)


def test_a_job_that_cannot_start_in_time_fails() -> None:
    late = StartWindow(NOW - timedelta(hours=2), NOW - timedelta(hours=1))
    found = step(facts(window=late, asked=("7-2-1-1",)), Elements(A=1))
    assert (found.end, found.reason, found.cancel) == ("fail", "TOO_LATE_TO_START", ("7-2-1-1",))


def test_nothing_is_sent_before_the_earliest_start() -> None:
    later = StartWindow(NOW + timedelta(seconds=40))
    found = step(facts(window=later), Elements(A=1))
    assert (found.phase, found.reason, found.seconds, found.place) == ("Choosing", "NOT_BEFORE", 40.0, None)


@pytest.mark.parametrize("phase", ["Choosing", "Deciding", "Confirming"])
def test_what_its_user_took_from_the_broker_is_left_alone_and_nothing_stays_reserved(phase: Any) -> None:
    found = step(facts(phase=phase, is_checking=False, asked=("a", "b")), Elements(A=1), [A])
    assert (found.phase, found.cancel, found.asked, found.place, found.end) == (
        "Over",
        ("a", "b"),
        (),
        None,
        "",
    )


# --- reservations -------------------------------------------------------------------------------------------------


def test_several_of_the_best_elements_are_asked_at_once() -> None:
    found = step(facts(round=1), Elements(A=30, B=10, C=20), [A, B, C])
    assert (found.phase, found.seconds, found.round) == ("Deciding", 10.0, 2)
    assert [(each.agreement_id, each.place) for each in found.requests] == [("7-2-2-1", B), ("7-2-2-2", C)]
    assert found.asked == ("7-2-2-1", "7-2-2-2")


def test_whoever_takes_a_step_over_asks_for_the_same_agreements() -> None:
    assert step(facts(), Elements(A=1, B=2), [A, B]) == step(facts(), Elements(A=1, B=2), [A, B])


def test_who_wants_no_reservation_gets_none() -> None:
    assert chosen(step(facts(wants_reservation=False), Elements(A=1), [A])) == "A"


def test_what_was_granted_decides_and_the_others_are_cancelled() -> None:
    agreements = {"x": held("x", B, "Temporary", 60), "y": held("y", C, "Temporary", 5)}
    deciding = facts(phase="Deciding", asked=("x", "y"), agreements=agreements)
    found = step(deciding, Elements(A=30, B=10, C=20))
    assert (found.phase, found.confirm, found.cancel, found.asked) == ("Confirming", ("y",), ("x",), ("y",))


def test_a_site_that_has_not_decided_in_time_is_left_out_and_cancelled() -> None:
    agreements = {"x": held("x", B, "Requested"), "y": held("y", C, "Temporary", 20)}
    deciding = facts(phase="Deciding", asked=("x", "y", "z"), agreements=agreements)
    found = step(deciding, Elements(C=20))
    assert (found.confirm, found.cancel) == (("y",), ("x", "z"))


def test_denied_everywhere_it_is_placed_without_a_reservation() -> None:
    agreements = {"x": held("x", B, "Denied")}
    deciding = facts(phase="Deciding", asked=("x",), agreements=agreements)
    found = step(deciding, Elements(A=30, B=10))
    assert (found.phase, chosen(found), found.cancel) == ("Placed", "B", ("x",))


def test_a_confirmed_agreement_places_the_job_in_its_reservation() -> None:
    ranking = (RankedElement(site="C", ce="ce", rank=1, seconds=5, agreement_id="y", agreement="Temporary"),)
    agreements = {"y": held("y", C, "Confirmed", 5)}
    found = step(facts(phase="Confirming", asked=("y",), agreements=agreements, ranking=ranking), Elements())
    assert found.phase == "Placed"
    assert found.place is not None
    assert found.place.agreement is not None
    assert found.place.agreement.reservation == "r-y"
    assert found.asked == ("y",)


@pytest.mark.parametrize("state", ["Temporary", "Expired", "Cancelled", "Denied"])
def test_an_agreement_that_was_not_confirmed_is_let_go_and_the_job_begins_again(state: str) -> None:
    ranking = (RankedElement(site="C", ce="ce", rank=1, seconds=5, agreement_id="y"),)
    agreements = {"y": held("y", C, state, 5)}
    found = step(facts(phase="Confirming", asked=("y",), agreements=agreements, ranking=ranking), Elements())
    assert (found.phase, found.reason, found.cancel) == ("Choosing", "AGREEMENT_LOST", ("y",))
