"""Resources that differ only in what no queue names are one kind, and no clause tells them apart."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, offers, requirements, resources
from wms.matching.clauses import fits
from wms.matching.grouping import Requirements
from wms.queue_index.named_values import NamedValues
from wms.site import Resource


def named_by(*queues: Requirements) -> NamedValues:
    names = NamedValues()
    for each in queues:
        names.add(each)
    return names


@settings(max_examples=200, deadline=None)
@given(st.lists(requirements(), max_size=4), resources(), resources())
def test_no_queue_tells_resources_of_one_kind_apart(
    queues: list[Requirements], one: Resource, other: Resource
) -> None:
    names = named_by(*queues)
    if names.kind(one) == names.kind(other) and one.cpu_time == other.cpu_time:
        for each in queues:
            assert (fits(each, one) is None) == (fits(each, other) is None)


@pytest.mark.parametrize(
    ("field", "value", "another"),
    [
        ("site", "A", "B"),
        ("grid_ce", "A", "B"),
        ("pilot_type", "A", "B"),
        ("platforms", ("A",), ("B",)),
        ("job_types", ("A",), ("B",)),
        ("banned_job_types", ("A",), ("B",)),
        ("tags", ("A",), ("B",)),
        ("memory_mb", 1_000, 2_000),
        ("disk_mb", 1_000, 2_000),
        ("processors", 3, 4),
    ],
)
def test_values_matter_once_a_queue_names_one_of_them(field: str, value: Any, another: Any) -> None:
    named: dict[str, dict[str, Any]] = {
        "site": {"banned_sites": ("A",)},
        "grid_ce": {"grid_ces": ("A",)},
        "pilot_type": {"pilot_types": ("a",)},
        "platforms": {"platforms": ("A",)},
        "job_types": {"job_types": ("A",)},
        "banned_job_types": {"job_types": ("a",)},
        "tags": {"tags": ("a",)},
        "memory_mb": {"min_ram_mb": 1_500},
        "disk_mb": {"min_disk_mb": 1_500},
        "processors": {"tags": ("4Processors",)},
    }
    one, other = offers(**{field: value}), offers(**{field: another})
    names = named_by(asks())
    assert names.kind(one) == names.kind(other)
    before = names.version
    names.add(asks(**named[field]))
    assert names.version > before
    assert names.kind(one) != names.kind(other)


def test_what_was_named_before_changes_nothing() -> None:
    names = named_by(asks(sites=("A",), min_ram_mb=1_000, tags=("gpu",)))
    before = names.version
    names.add(asks(sites=("a",), banned_sites=("A",), min_ram_mb=1_000, tags=("GPU",)))
    assert names.version == before


def test_memory_is_as_much_as_the_largest_demand_that_it_meets() -> None:
    names = named_by(asks(min_ram_mb=4_000), asks(min_ram_mb=1_000))
    assert [names.memory(each) for each in (0, 999, 1_000, 3_999, 4_000, 10**6)] == [
        0,
        0,
        1_000,
        1_000,
        4_000,
        4_000,
    ]


def test_a_disk_that_is_not_told_is_another_thing_than_a_small_one() -> None:
    names = named_by(asks(min_disk_mb=1_000))
    assert names.disk(0) is None
    assert (names.disk(1), names.disk(1_000)) == (0, 1_000)


def test_owners_of_private_pilots_matter_where_they_have_jobs_of_their_own() -> None:
    names = named_by(asks(owner="ann"))
    private = {"generic": False, "owner_group": "g"}
    assert names.kind(offers(owner="bob", **private)) == names.kind(offers(owner="eve", **private))
    assert names.kind(offers(owner="ann", **private)) != names.kind(offers(owner="eve", **private))
    sharing = {**private, "job_sharing": True}
    assert names.kind(offers(owner="ann", **sharing)) == names.kind(offers(owner="eve", **sharing))
