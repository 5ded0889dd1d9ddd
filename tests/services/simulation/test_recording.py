"""What a system writes down for simulations, and that it can be simulated."""

from pathlib import Path

import pytest

from tests.services.job_manager.queries.explained import advertise
from tests.services.world import World, result
from wms.errors import Rejected
from wms.replay.record import write
from wms.replay.workloads import read
from wms.simulation.recording import read as read_recording
from wms.simulation.scenario import Scenario
from wms.simulation.simulation import Simulation

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_ran_is_written_down_and_can_be_simulated(the_world: World, tmp_path: Path) -> None:
    await advertise(the_world, slots=4)
    held = await the_world.running(3, cpu_time=4_000)
    await the_world.report(finish=tuple(result(each) for each in held[:2]))
    await the_world.submitted(2)
    file = tmp_path / "r.jsonl"
    assert await write(the_world.db, file) == (2, 1)
    workload = read(file, 10)
    assert [each.requirements.cpu_segment for each in workload.arrivals] == [5_000, 5_000]
    assert [each.site for each in workload.arrivals] == ["A", "A"]
    assert [each.slots for each in workload.elements] == [4]
    assert list(Simulation(workload, Scenario()).run().done) == [1, 1]


@pytest.mark.parametrize("line", ["{", '{"type":"job"}', '{"type":"jab"}', "1 2 3"])
async def test_what_is_no_recording_is_refused_by_its_line(line: str) -> None:
    with pytest.raises(Rejected, match="line 2"):
        read_recording(["\n", line], 10)
    with pytest.raises(Rejected, match="no job"):
        read_recording([], 10)
