"""The jobs that an agent holds: which begins next, in what room, and which it has taken already."""

import msgspec
import pytest

from services.job_agent.leased_jobs import LeasedJob, LeasedJobs
from services.job_agent.offered_job import read
from tests.unit.job_agent.examples import offered
from wms.ids import AttemptId, Epoch, JobId


def in_line(holdings: LeasedJobs, number: int, at: float = 0.0, **description: object) -> LeasedJob:
    holding = holdings.take(read(offered(number, **description)))
    holding.expires_at = 1e9
    holdings.make_ready(holding, at)
    return holding


def begin(holdings: LeasedJobs) -> LeasedJob | None:
    holding = holdings.next_to_start()
    if holding is not None:
        holding.payload = object()  # type: ignore[assignment]
    return holding


def test_who_stands_in_the_line_begins_in_turn_as_there_is_room() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000)
    wide = [in_line(holdings, number, processors=2) for number in (1, 2, 3)]
    narrow = in_line(holdings, 4)
    assert [begin(holdings), begin(holdings)] == wide[:2]
    assert begin(holdings) is None
    holdings.drop(wide[0])
    assert begin(holdings) is wide[2]
    assert begin(holdings) is None
    holdings.drop(wide[1])
    assert begin(holdings) is narrow
    assert holdings.busy == 3


def test_memory_is_room_too() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000)
    first, second = in_line(holdings, 1, memory_mb=600), in_line(holdings, 2, memory_mb=600)
    assert begin(holdings) is first
    assert begin(holdings) is None
    holdings.drop(first)
    assert begin(holdings) is second


def test_no_two_jobs_have_the_same_gpu() -> None:
    holdings = LeasedJobs(slots=8, memory_mb=1_000, gpus=("GPU-a", "MIG-b", "2"))
    pair, one, late, none = (
        in_line(holdings, 1, gpus=2),
        in_line(holdings, 2, requirements="other.GPUNumber >= 1"),
        in_line(holdings, 3, gpus=1),
        in_line(holdings, 4),
    )
    assert holdings.unclaimed_gpus == 0
    assert [begin(holdings), begin(holdings)] == [pair, one]
    assert (pair.gpus, one.gpus) == (("GPU-a", "MIG-b"), ("2",))
    assert begin(holdings) is None, "the third waits for a GPU"
    holdings.drop(pair)
    assert [begin(holdings), begin(holdings)] == [late, none]
    assert (late.gpus, none.gpus) == (("GPU-a",), ())
    assert holdings.unclaimed_gpus == 1


def test_each_job_has_processors_of_its_own_where_the_pilot_shares_them_out() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000, cpus=(4, 5, 6, 7))
    wide, narrow = in_line(holdings, 1, processors=2), in_line(holdings, 2)
    assert [begin(holdings), begin(holdings)] == [wide, narrow]
    holdings.drop(wide)
    other = in_line(holdings, 3, processors=3)
    assert begin(holdings) is other
    assert (wide.cpus, narrow.cpus, other.cpus) == ((4, 5), (6,), (4, 5, 7))


def test_who_can_use_more_processors_gets_those_that_nobody_holds() -> None:
    holdings = LeasedJobs(slots=8, memory_mb=1_000)
    narrow = in_line(holdings, 1, processors=2)
    some, any_number = (
        in_line(holdings, 2, min_processors=1, max_processors=3),
        in_line(holdings, 3, min_processors=1),
    )
    assert [begin(holdings) for _ in range(3)] == [narrow, some, any_number]
    assert [each.processors for each in (narrow, some, any_number)] == [2, 3, 3]
    assert holdings.busy == 8


def test_who_wants_a_whole_node_runs_alone() -> None:
    holdings = LeasedJobs(slots=4, memory_mb=1_000)
    narrow, whole = in_line(holdings, 1), in_line(holdings, 2, whole_node=True)
    assert begin(holdings) is narrow
    assert begin(holdings) is None
    holdings.drop(narrow)
    assert begin(holdings) is whole
    assert holdings.processors == 4


def test_who_is_wider_than_the_pilot_runs_alone() -> None:
    holdings = LeasedJobs(slots=1, memory_mb=1)
    assert begin(holdings) is None
    wide = in_line(holdings, 1, processors=8, memory_mb=64)
    assert begin(holdings) is wide


def test_what_has_waited_in_the_line_is_stale() -> None:
    holdings = LeasedJobs(slots=1, memory_mb=1)
    first, second, _ = (in_line(holdings, number, at=float(number)) for number in (1, 2, 3))
    assert holdings.stale(since=2.0) == [first, second]
    assert holdings.stale(since=0.5) == []


def test_each_lease_is_taken_once() -> None:
    holdings = LeasedJobs(slots=1, memory_mb=1)
    holding = holdings.take(read(offered(1)))
    holdings.drop(holding)
    assert holdings.knows(holding.attempt_id)
    assert not holdings.knows(AttemptId(JobId(1), Epoch(2)))


@pytest.mark.parametrize(
    "description", [b"{}", b'{"executable": 1}', b"nonsense", b'{"executable": "x", "of_tomorrow": 1}']
)
def test_a_description_of_tomorrow_is_a_fault_of_the_holding(description: bytes) -> None:
    job = msgspec.structs.replace(offered(1), description=msgspec.Raw(description))
    assert "cannot read" in LeasedJobs(slots=1, memory_mb=1).take(read(job)).fault
