"""Explanations held against the functions that decide: nothing is told that they would not do, and nothing is left out."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from services.job_manager.queries.relaxations import relaxation
from tests.unit.matching.strategies import asks, requirements
from wms.job.reasons import Wait
from wms.matching.clauses import Mismatch, explain
from wms.matching.grouping import Requirements, processor_tags
from wms.provisioning.demand import WAYS, JobDemand, obstacles, reach
from wms.site import ComputingElement, folded
from wms.why.relaxation import MOST, changes, openings, relaxed
from wms.why.verdict import ElementSupply, failures, verdicts
from wms.why.wait_tiers import judge, standing

SEGMENTS = (500, 5_000, 50_000)


def element(ce: str = "ce", **fields: Any) -> ComputingElement:
    given: dict[str, Any] = {"site": "A", "ce": ce, "setup": "s", "slots": 10, "max_cpu_time": 1_000}
    return ComputingElement(**(given | fields))


def place(ce: str = "ce", **fields: Any) -> ElementSupply:
    return ElementSupply(element=element(ce, **fields))


_NAMES = st.lists(st.sampled_from(["A", "B", "C"]), max_size=2).map(tuple)
_TAGS = st.lists(st.sampled_from(["gpu", "ssd"]), max_size=2).map(tuple)


def elements() -> st.SearchStrategy[ComputingElement]:
    return st.builds(
        ComputingElement,
        site=st.sampled_from(["A", "B"]),
        ce=st.sampled_from(["A", "B", "C"]),
        slots=st.integers(0, 20),
        max_cpu_time=st.sampled_from([100, 500, 5_000]),
        setup=st.sampled_from(["s", "s", "t", ""]),
        submit_pools=_NAMES,
        pilot_type=st.sampled_from(["", "A"]),
        platforms=_NAMES,
        job_types=_NAMES,
        vos=st.sampled_from([(), (), ("v",), ("w",)]),
        memory_mb=st.sampled_from([0, 2_000, 8_000]),
        tags=_TAGS,
        required_tags=_TAGS,
        slots_per_pilot=st.integers(1, 3),
        cores_per_pilot=st.integers(1, 3),
    )


def places() -> st.SearchStrategy[list[ElementSupply]]:
    one = st.builds(
        ElementSupply,
        element=elements(),
        fresh=st.booleans(),
        running=st.integers(0, 2),
        free_slots=st.integers(0, 2),
    )
    return st.lists(one, max_size=8)


@given(requirements(), elements())
def test_the_first_obstacle_is_what_the_planner_stops_at(wanted: Requirements, at: ComputingElement) -> None:
    every = obstacles(wanted, at)
    first = reach(wanted, at)
    assert first in every if first else not every


@settings(deadline=None)
@given(requirements(), st.lists(elements(), max_size=5))
def test_many_elements_are_judged_as_each_alone(wanted: Requirements, there: list[ComputingElement]) -> None:
    together = JobDemand(wanted)
    for at in there:
        resource = at.pilot_resource(vo=wanted.vo)
        found = together.obstacles(at)
        assert found == JobDemand(wanted).obstacles(at)
        ways = {way.name for way in WAYS}
        by_matcher = {each for each in found if each.clause not in ways}
        assert by_matcher == set(explain(wanted, resource))


@settings(max_examples=300, deadline=None)
@given(requirements(), places())
def test_what_is_told_to_do_does(wanted: Requirements, there: list[ElementSupply]) -> None:
    found = openings(wanted, verdicts(wanted, there), SEGMENTS)
    assert len(found) <= MOST
    assert len({len(opening.clauses) for opening in found}) <= 1
    for opening in found:
        shut = [each for each in there if each.fresh and reach(wanted, each.element)]
        opened = [each for each in shut if reach(opening.requirements, each.element) is None]
        assert opened
        # A job type may be refused by two clauses that look at it; else nothing that opens is left out.
        assert set(opening.places) <= set(opened)
        assert "job type" in str(opening.clauses) or set(opening.places) == set(opened)
        said = relaxation(wanted, opening)
        assert said.changes
        assert said.elements == len(opening.places)
        assert said.sites_total == len({each.element.site for each in opening.places})


@settings(max_examples=300, deadline=None)
@given(requirements(), places())
def test_no_smaller_change_is_passed_over(wanted: Requirements, there: list[ElementSupply]) -> None:
    said = verdicts(wanted, there)
    found = openings(wanted, said, SEGMENTS)
    smallest = len(found[0].clauses) if found else 99
    for each in said:
        names = {mismatch.clause for mismatch in each.failing}
        if not each.place.fresh or not names or len(names) >= smallest:
            continue
        changed = relaxed(wanted, sorted(names), each.place.element, SEGMENTS)
        assert changed is None or reach(changed, each.place.element) is not None


def opened_by(wanted: Requirements, *there: ElementSupply) -> list[tuple[list[str], int]]:
    found = openings(wanted, verdicts(wanted, there), SEGMENTS)
    return [(list(relaxation(wanted, each).changes), each.slots) for each in found]


@pytest.mark.parametrize(
    ("wanted", "offered", "words"),
    [
        (asks(min_ram_mb=8_000), {"memory_mb": 4_000}, "memory 4000 MB instead of 8000"),
        (asks(min_ram_mb=8_000), {}, "without saying memory"),
        (asks(cpu_segment=50_000), {"max_cpu_time": 6_000}, "cpu-time of at most 5000 s instead of 50000"),
        (asks(sites=("CERN",)), {}, "without site CERN"),
        (asks(banned_sites=("A", "B")), {}, "without banned-site A"),
        (asks(grid_ces=("x",)), {}, "without ce x"),
        (asks(tags=("gpu", "ssd")), {"tags": ("ssd",)}, "without tag gpu"),
        (asks(tags=processor_tags(8)), {"cores_per_pilot": 4}, "processors 4 instead of 8"),
        (asks(), {"tags": ("gpu",), "required_tags": ("gpu",)}, "with tag gpu"),
        (asks(platforms=("x",)), {"platforms": ("y",)}, "without platform x"),
        (asks(job_types=("User",)), {"job_types": ("MC",)}, "job-type MC instead of User"),
        (asks(setup="t"), {}, "setup s instead of t"),
        (asks(submit_pools=("p",)), {"submit_pools": ("q",)}, "without submit-pool p"),
        (asks(grid_middlewares=("arc",)), {}, "without grid-middleware arc"),
    ],
)
def test_what_would_do_is_said_as_a_value(wanted: Requirements, offered: dict[str, Any], words: str) -> None:
    ((said, slots),) = opened_by(wanted, place(**offered))
    assert said == [words]
    assert slots == 10


def test_less_memory_opens_more_and_both_ends_are_told() -> None:
    there = [place(f"ce{n}", memory_mb=megabytes) for n, megabytes in enumerate((6_000, 4_000, 2_000))]
    assert opened_by(asks(min_ram_mb=8_000), *there) == [
        (["memory 2000 MB instead of 8000"], 30),
        (["memory 4000 MB instead of 8000"], 20),
        (["memory 6000 MB instead of 8000"], 10),
    ]


def test_a_pair_is_told_only_where_no_single_change_does() -> None:
    wanted = asks(sites=("B",), min_ram_mb=8_000)
    both = place(memory_mb=4_000)
    assert opened_by(wanted, both) == [(["memory 4000 MB instead of 8000", "without site B"], 10)]
    one = place("big", memory_mb=8_000, slots=1)
    assert opened_by(wanted, both, one) == [(["without site B"], 1)]


def test_what_nobody_can_change_is_not_told() -> None:
    assert opened_by(asks(), place(vos=("w",))) == []
    assert opened_by(asks(cpu_segment=500), place(max_cpu_time=100)) == []
    assert opened_by(asks(min_ram_mb=1), ElementSupply(element=element(), fresh=False)) == []


def test_places_are_counted_by_processors() -> None:
    wanted = asks(tags=(*processor_tags(4), "gpu"))
    assert opened_by(wanted, place(slots=10, cores_per_pilot=4, slots_per_pilot=4)) == [
        (["without tag gpu"], 2)
    ]


def test_processors_beyond_any_resource_are_no_error() -> None:
    assert opened_by(asks(tags=("5000Processors",)), place(cores_per_pilot=2)) == [
        (["processors 2 instead of 5000"], 10)
    ]


@example(asks(tags=("2Processors",)), asks(tags=("2Processors", "MultiProcessor")))
@given(requirements(), requirements())
def test_equal_requirements_have_no_changes(one: Requirements, other: Requirements) -> None:
    comparable = replace(other, owner=one.owner, owner_group=one.owner_group, vo=one.vo)
    assert bool(changes(one, comparable)) == (one != comparable)


# --- tiers -----------------------------------------------------------------------------------------------------------


def at(**fields: Any) -> ElementSupply:
    offered = {name: fields.pop(name) for name in list(fields) if name in ComputingElement.__struct_fields__}
    return ElementSupply(element=element(**offered), **fields)


@pytest.mark.parametrize(
    ("wanted", "there", "code"),
    [
        (asks(sites=("A",), banned_sites=("A", "B")), [at()], Wait.NEVER_POSSIBLE),
        (asks(tags=("gpu",)), [at(), at(fresh=False)], Wait.NEVER_POSSIBLE),
        (asks(), [], Wait.IMPOSSIBLE_NOW),
        (asks(tags=("gpu",)), [at(), at(tags=("gpu",), fresh=False)], Wait.IMPOSSIBLE_NOW),
        (asks(), [at(coming=2)], Wait.NO_PILOT),
        (asks(), [at(), at(fresh=False, running=1, slots=3, free_slots=3)], Wait.NO_PILOT),
        (asks(tags=("gpu",)), [at(running=1, slots=3, free_slots=3), at(tags=("gpu",))], Wait.NO_PILOT),
        (asks(), [at(running=2, slots=4)], Wait.SLOTS_BUSY),
        (asks(), [at(running=2, slots=4, free_slots=1)], Wait.SOON),
    ],
)
def test_tiers(wanted: Requirements, there: list[ElementSupply], code: Wait) -> None:
    found = judge(standing(wanted, verdicts(wanted, there)))
    assert found.code is code
    assert found.text


def test_a_limit_holds_where_it_holds_everywhere() -> None:
    def enough(_: Requirements, at: Any) -> Mismatch | None:
        return Mismatch("running limit", "10 of 10 run at A") if at.site == "A" else None

    free = at(running=1, slots=2, free_slots=1)
    held = judge(standing(asks(), verdicts(asks(), [free], [enough])))
    assert held.code is Wait.HELD_BY_LIMIT
    assert "10 of 10 run at A" in held.text
    other = at(site="B", running=1, slots=2)
    assert judge(standing(asks(), verdicts(asks(), [free, other], [enough]))).code is Wait.SLOTS_BUSY


def test_a_queue_with_next_to_no_draws_is_behind_others() -> None:
    said = verdicts(asks(), [at(running=1, slots=9, free_slots=5)])
    assert judge(standing(asks(), said, chance=0.5)).code is Wait.SOON
    assert judge(standing(asks(), said, chance=0.1)).code is Wait.BEHIND_OTHERS
    assert judge(standing(asks(), said, chance=0.0)).code is Wait.BEHIND_OTHERS


@settings(deadline=None)
@given(requirements(), places())
def test_the_tier_is_true(wanted: Requirements, there: list[ElementSupply]) -> None:
    """Whatever there is: never and now are said exactly when the planner could send a pilot nowhere known or nowhere at all."""
    code = judge(standing(wanted, verdicts(wanted, there))).code
    now = any(each.fresh and reach(wanted, each.element) is None for each in there)
    ever = any(reach(wanted, each.element) is None for each in there)
    contradicts = bool(wanted.sites) and set(folded(wanted.sites)) <= set(folded(wanted.banned_sites))
    never = contradicts or (bool(there) and not ever)
    assert (code is Wait.NEVER_POSSIBLE) == never
    assert (code is Wait.IMPOSSIBLE_NOW) == (not never and not now)


def test_failures_are_counted_by_clause() -> None:
    wanted = asks(tags=("gpu",), min_ram_mb=1)
    said = verdicts(wanted, [place(), place("big", memory_mb=1), place("x", memory_mb=5)])
    assert failures(said) == {"tags": 3, "memory": 1}
