"""From descriptions to requirements: what each field becomes in the key of a task queue."""

from typing import Any

import pytest

from wms.jobdesc import JobDescription
from wms.jobdesc.validation import validate
from wms.matching.grouping import DEFAULT_SEGMENTS, Requirements
from wms.matching.requirements import Credentials, requirements_of


def required(credentials: Credentials | None = None, **fields: Any) -> Requirements:
    description = JobDescription(executable="run", **fields)
    assert validate(description) == []
    return requirements_of(
        description, "alice", "higgs", "atlas", DEFAULT_SEGMENTS, credentials=credentials or Credentials()
    )


def test_gpus_become_a_requirement_on_the_node() -> None:
    assert required(gpus=2).requirements == required(requirements="other.GPUNumber >= 2").requirements
    both = required(gpus=2, requirements="other.a || other.b").requirements
    assert both == "(other.a || other.b) && other.gpunumber >= 2"
    assert required(gpus=0) == required()


@pytest.mark.parametrize(
    ("fields", "tags"),
    [
        ({}, set()),
        ({"processors": 4}, {"4Processors", "MultiProcessor"}),
        ({"min_processors": 1, "max_processors": 1}, set()),
        ({"min_processors": 1, "max_processors": 8}, {"MultiProcessor"}),
        ({"min_processors": 1}, {"MultiProcessor"}),
        ({"min_processors": 4}, {"4Processors", "MultiProcessor"}),
        ({"min_processors": 4, "max_processors": 8}, {"4Processors", "MultiProcessor"}),
        ({"whole_node": True}, {"WholeNode", "MultiProcessor"}),
        ({"container": "docker://a/b"}, {"Container"}),
        ({"network": "none"}, {"PrivateNetwork"}),
        ({"container": "docker://a/b", "network": "none"}, {"Container"}),
        ({"whole_node": True, "tags": ("gpu",)}, {"WholeNode", "MultiProcessor", "gpu"}),
    ],
)
def test_processors_and_whole_nodes_become_the_tags_of_dirac(fields: dict[str, Any], tags: set[str]) -> None:
    assert set(required(**fields).tags) == tags


def test_a_site_both_wanted_and_banned_is_subtracted() -> None:
    assert required(sites=("A", "B"), banned_sites=("b",)).sites == ("A",)
    assert required(sites=("A",), banned_sites=("C",)).sites == ("A",)
    assert required(banned_sites=("C",)).sites == ()


def test_stations_become_a_constraint_on_the_ad() -> None:
    one = required(stations=("FNAL-Farm",)).requirements
    assert one == 'member("fnal-farm", other.stationnames)'
    several = required(stations=("b", "A", "a"), requirements="other.X > 1 || other.Y").requirements
    names = 'member("a", other.stationnames) || member("b", other.stationnames)'
    assert several == f"(other.x > 1 || other.y) && ({names})"


def test_memory_and_disk() -> None:
    asked = required(memory_mb=2_000, max_memory_mb=4_000, disk_mb=10_000)
    assert (asked.min_ram_mb, asked.max_ram_mb, asked.min_disk_mb) == (2_000, 4_000, 10_000)


def test_the_middleware_is_asked_for_as_it_is_named() -> None:
    assert required(grid_middlewares=("ARC", "Slurm")).grid_middlewares == ("ARC", "Slurm")


def test_who_somebody_is_comes_from_the_token_alone() -> None:
    asked = required(Credentials("/CN=Alice", ("/atlas",)))
    assert (asked.certificate_subject, asked.fqans) == ("/CN=Alice", ("/atlas",))
    assert not {"certificate_subject", "fqans"} & set(JobDescription.__struct_fields__)
