"""Jobs start together, each in a reservation at another site, or nothing stays reserved: decided without database, clock or messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from services.resource_broker.coallocation import AHEAD, ROUNDS, TOGETHER, GroupStepInputs, group_step
from services.resource_broker.failed_placements import FailedPlacement
from services.resource_broker.job_group import GroupMember, JobGroup
from services.resource_broker.next_step import HeldAgreement, NextStep, StepFacts
from tests.unit.resource_broker.test_next_step import NOW, TERMS, A, B, C, Elements, facts
from wms.broker.start_window import StartWindow
from wms.ids import CeId, JobId
from wms.job.state import State

SLOT = timedelta(minutes=1)


def together(size: int = 2, *states: State) -> JobGroup:
    all_ = states or (State.CHECKING,) * size
    members = (GroupMember(JobId(n), state, 2) for n, state in enumerate(all_, start=7))
    return JobGroup(tuple(members), size, JobId(7))


def step(
    now_facts: StepFacts,
    elements: Elements,
    group: JobGroup | None = None,
    *,
    reservable: Sequence[CeId] = (A, B, C),
    now: datetime = NOW,
) -> NextStep:
    inputs = GroupStepInputs(assess=elements.assess, reservable=reservable, now=now, terms=TERMS)
    return group_step(now_facts, group or together(), inputs)


def granted(**seconds: float) -> dict[str, HeldAgreement]:
    return {
        name: HeldAgreement(
            agreement_id=name,
            place=CeId(name.upper(), "ce"),
            state="Temporary",
            start_at=NOW + timedelta(seconds=each),
            reservation=f"r-{name}",
        )
        for name, each in seconds.items()
    }


def deciding(agreements: Mapping[str, HeldAgreement], **more: Any) -> StepFacts:
    usual = {"phase": "Deciding", "round": 1, "asked": tuple(agreements), "agreements": agreements}
    return facts(**usual | more)


def test_all_elements_that_fit_are_asked_for_the_same_start() -> None:
    found = step(facts(), Elements(A=30, B=10, C=20))
    assert [each.place for each in found.requests] == [B, C, A]
    assert {each.start for each in found.requests} == {NOW + AHEAD}
    assert (found.phase, found.round, found.asked) == ("Deciding", 1, ("7-2-1-1", "7-2-1-2", "7-2-1-3"))


def test_fewer_elements_than_jobs_are_not_asked() -> None:
    found = step(facts(), Elements(A=1, B=2), reservable=[A])
    assert (found.phase, found.reason, found.requests) == ("Choosing", "NO_AGREEMENT", ())
    assert "2 elements that take reservations are needed, and 1 fit now" in found.text


def test_equal_starts_are_confirmed_and_the_others_cancelled() -> None:
    found = step(deciding(granted(a=20, b=40, c=20.5)), Elements(A=1, B=2, C=3))
    assert (found.phase, found.confirm, found.cancel) == ("Confirming", ("a", "c"), ("b",))


def test_what_starts_too_early_is_asked_for_again_from_the_latest_start_on() -> None:
    found = step(deciding(granted(a=20, b=40)), Elements(A=1, B=2))
    assert (found.phase, found.cancel, found.confirm) == ("Deciding", ("a",), ())
    assert [(each.place, each.start) for each in found.requests] == [(A, NOW + timedelta(seconds=40))]
    assert found.asked == ("b", "7-2-2-1")


def test_too_few_grants_leave_nothing_reserved() -> None:
    found = step(deciding(granted(a=20)), Elements(A=1, B=2))
    assert (found.phase, found.reason, found.cancel, found.asked) == (
        "Choosing", "NO_AGREEMENT", ("a",), (),
    )  # fmt: skip
    assert "2 reservations are needed at a time, and 1 were granted" in found.text


def test_without_a_common_start_it_begins_anew() -> None:
    found = step(deciding(granted(a=20, b=40), round=ROUNDS), Elements(A=1, B=2))
    assert (found.phase, found.reason, found.cancel) == ("Choosing", "NO_AGREEMENT", ("a", "b"))
    assert step(facts(round=ROUNDS), Elements(A=1, B=2)).round == ROUNDS + 1
    assert step(facts(round=3), Elements(A=1, B=2)).round == ROUNDS + 1


def confirming(**states: str) -> StepFacts:
    all_ = granted(a=20, b=20)
    agreements = {name: replace(all_[name], state=state) for name, state in states.items()}
    ranking = step(deciding(all_), Elements(A=1, B=2)).ranking
    return deciding(agreements, phase="Confirming", ranking=ranking)


def test_all_jobs_are_placed_once_all_agreements_are_confirmed() -> None:
    found = step(confirming(a="Confirmed", b="Confirmed"), Elements())
    assert found.phase == "Placed"
    assert [(each.element.site, each.agreement and each.agreement.agreement_id) for each in found.placed] == [
        ("A", "a"), ("B", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["Temporary", "Expired", "Cancelled"])
def test_one_agreement_that_was_not_confirmed_loses_all(state: str) -> None:
    found = step(confirming(a="Confirmed", b=state), Elements())
    assert (found.phase, found.reason, found.cancel) == ("Choosing", "AGREEMENT_LOST", ("a", "b"))


def test_the_others_wait_for_the_leader() -> None:
    found = step(facts(job_id=JobId(8)), Elements(A=1, B=2))
    assert (found.phase, found.reason, found.requests) == ("Choosing", "WITH_LEADER", ())


@pytest.mark.parametrize("phase", ["Choosing", "Deciding", "Confirming"])
def test_a_broken_group_fails_and_nothing_stays_reserved(phase: Any) -> None:
    broken = together(2, State.CHECKING, State.KILLED)
    found = step(deciding(granted(a=20, b=20), phase=phase), Elements(A=1, B=2), broken)
    assert (found.end, found.reason, found.cancel) == ("fail", "COALLOCATION_BROKEN", ("a", "b"))


@pytest.mark.parametrize("state", [State.HELD, State.RUNNING])
def test_a_job_that_is_held_or_about_to_be_is_waited_for_and_nothing_stays_reserved(state: State) -> None:
    waiting = together(2, State.CHECKING, state)
    found = step(deciding(granted(a=20, b=20)), Elements(A=1, B=2), waiting)
    assert (found.phase, found.reason, found.cancel) == ("Choosing", "WITH_OTHERS", ("a", "b"))


def test_a_group_that_can_start_in_time_no_more_fails() -> None:
    late = StartWindow(NOW - timedelta(hours=2), NOW - timedelta(hours=1))
    found = step(facts(window=late), Elements(A=1, B=2))
    assert (found.end, found.reason) == ("fail", "TOO_LATE_TO_START")


def test_a_group_whose_elements_have_failed_is_held() -> None:
    failed = (FailedPlacement(A, "REFUSED: no room"),)
    found = step(facts(failed=failed), Elements(A=1, B=2))
    assert (found.end, found.reason) == ("hold", "NOT_PLACED")
    again = (FailedPlacement(A, "NOT_TOGETHER", again_at=NOW),)
    assert step(facts(failed=again), Elements(A=1, B=2)).phase == "Deciding"


# --- whatever calendars the sites have ----------------------------------------------------------------------------


class Site:
    """A site that grants the earliest free slot from a start on, with minutes that are taken; it may confirm nothing."""

    def __init__(self, taken: set[int], lasts: int, *, confirms: bool) -> None:
        self.taken = taken
        self.lasts = lasts
        self.confirms = confirms

    def grant(self, start: datetime, now: datetime) -> datetime | None:
        moment = max(start, now)
        for _ in range(100):
            if moment - NOW > self.lasts * SLOT:
                return None
            minute = (moment - NOW) // SLOT
            if not {minute, minute + 1} & self.taken:
                return moment
            moment = NOW + (minute + 1) * SLOT
        return None


class Grid:
    """Sites, and what they hold of one group."""

    def __init__(self, sites: Mapping[CeId, Site]) -> None:
        self.sites = sites
        self.held: dict[str, HeldAgreement] = {}
        self.now = NOW

    def told(self, found: NextStep) -> None:
        """Carry out a step as the sites do: what is cancelled first."""
        for name in found.cancel:
            self.held.pop(name, None)
        for name in found.confirm:
            if self.sites[self.held[name].place].confirms:
                self.held[name] = replace(self.held[name], state="Confirmed")
        for each in found.requests:
            assert not any(each.place == one.place for one in self.held.values()), "one at a time"
            assert each.start is not None
            self.now += timedelta(seconds=0.3)
            start = self.sites[each.place].grant(each.start, self.now)
            if start is not None:
                self.held[each.agreement_id] = HeldAgreement(
                    agreement_id=each.agreement_id, place=each.place, state="Temporary", start_at=start
                )


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    names = [CeId(name, "ce") for name in "ABCDE"[: draw(st.integers(1, 5))]]
    minutes = st.sets(st.integers(0, 12), max_size=10)
    return Grid(
        {
            name: Site(draw(minutes), draw(st.integers(1, 20)), confirms=draw(st.integers(0, 9)) > 0)
            for name in names
        }
    )


@settings(max_examples=300, deadline=None)
@given(grids(), st.integers(2, 3))
def test_either_all_start_together_or_nothing_is_held(grid: Grid, size: int) -> None:
    there = Elements(**{place.site: n for n, place in enumerate(grid.sites, start=1)})
    now_facts = facts()
    for _ in range(ROUNDS + 3):
        found = step(now_facts, there, together(size), reservable=list(grid.sites), now=grid.now)
        grid.told(found)
        if found.phase != "Deciding" and found.phase != "Confirming":
            break
        grid.now += timedelta(seconds=1)
        now_facts = msgspec.structs.replace(
            now_facts,
            phase=found.phase,
            round=found.round,
            asked=found.asked,
            agreements=dict(grid.held),
            ranking=found.ranking or (),
        )
    if found.phase == "Placed":
        starts = [
            each.agreement.start_at for each in found.placed if each.agreement and each.agreement.start_at
        ]
        assert len(starts) == len({each.element.site for each in found.placed}) == size
        assert max(starts) - min(starts) <= TOGETHER
        assert {each.state for each in grid.held.values()} == {"Confirmed"}
        assert len(grid.held) == size
    else:
        assert found.phase == "Choosing"
        assert grid.held == {}


def test_sites_with_a_common_free_slot_find_it() -> None:
    one, other = Site({0, 1, 4, 5}, 20, confirms=True), Site({2, 3}, 20, confirms=True)
    grid = Grid({A: one, B: other})
    now_facts, starts = facts(), []
    for _ in range(ROUNDS):
        found = step(now_facts, Elements(A=1, B=2), now=grid.now)
        grid.told(found)
        if found.phase == "Placed":
            starts = [each.agreement.start_at for each in found.placed if each.agreement]
            break
        now_facts = replace(
            now_facts,
            phase=found.phase,
            round=found.round,
            asked=found.asked,
            agreements=dict(grid.held),
            ranking=found.ranking or (),
        )
    assert starts == [NOW + 6 * SLOT] * 2
