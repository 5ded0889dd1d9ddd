"""Offered jobs: their description decoded once, and its faults their own."""

import msgspec
import pytest
from msgspec.structs import replace

from services.job_agent.offered_job import read
from tests.unit.job_agent.examples import offered


def test_a_job_of_a_sweep_has_its_own_values() -> None:
    job = replace(
        offered(7, executable="sim", arguments=["{p}", "{n}"], parameters={"p": ["a", "b", "c"]}),
        array_index=2,
        parameters={"p": "c"},
    )
    found = read(job)
    assert (found.description.executable, found.description.arguments) == ("sim", ("c", "2"))
    assert found.attempt_id == (7, 1)
    assert found.fault == ""


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"executable": 5}', b'{"cpu_time": 1}', b"\xff"])
def test_what_cannot_be_read_is_a_fault_of_that_job(text: bytes) -> None:
    found = read(replace(offered(7), description=msgspec.Raw(text)))
    assert found.fault.startswith("this agent cannot read the job's description: ")
    assert found.description.executable == ""


@pytest.mark.parametrize(
    ("asked", "slots"),
    [
        ({}, 1),
        ({"processors": 4}, 4),
        ({"processors": 4, "min_processors": 2}, 2),
        ({"whole_node": True}, 16),
    ],
)
def test_a_job_takes_at_least_the_slots_that_it_needs(asked: dict[str, object], slots: int) -> None:
    assert read(offered(1, **asked)).slots(16) == slots
