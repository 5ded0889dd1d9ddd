"""Explanations held against the functions that decide: nothing is told that they would not do, and nothing is left out."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from msgspec.structs import replace

from services.job_manager.queries.relaxations import relaxation
from tests.unit.matching.strategies import asks, requirements
from tests.unit.why.elements import element, place, places
from wms.matching.grouping import Requirements, processor_tags
from wms.provisioning.demand import reach
from wms.why.relaxation import MOST, changes, openings, relaxed
from wms.why.verdict import ElementSupply, verdicts

SEGMENTS = (500, 5_000, 50_000)


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
        (
            asks(cpu_segment=25_920_000),
            {"max_cpu_time": 864_000},
            "cpu-time of at most 864000 s instead of 25920000",
        ),
        (asks(min_disk_mb=10_000_000), {"disk_mb": 9_000}, "disk 9000 MB instead of 10000000"),
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
