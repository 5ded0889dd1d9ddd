"""The pilots of an element that starts each at once have its slots together, and no more."""

import pytest

from services.pilot_submitter.free_slots import FreeSlots
from wms.db.pilot import EqualPilots
from wms.site import ComputingElement


def element(slots: int, of_each: int, dispatcher: str = "local") -> ComputingElement:
    return ComputingElement(
        site="A",
        ce="ce",
        slots=slots,
        max_cpu_time=1_000,
        dispatcher=dispatcher,
        slots_per_pilot=of_each,
        cores_per_pilot=of_each,
        memory_mb=1_000 * of_each,
    )


def live(pilots: int, slots: int) -> EqualPilots:
    return EqualPilots(
        site="A", ce="ce", vo="", state="Running", slots=slots, busy=0, resource="", asks="", idle_node="", free_memory_mb=None,
        silent=False, owner_group="", lasts=0, pilots=pilots, worked=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("slots", "alive", "sizes"),
    [
        (20, [], [8, 8, 4]),
        (20, [live(1, 4)], [8, 8]),
        (8, [], [8]),
        (3, [], [3]),
        (20, [live(2, 8), live(1, 8)], []),
    ],
)
def test_the_last_pilot_gets_the_rest(slots: int, alive: list[EqualPilots], sizes: list[int]) -> None:
    left, found = FreeSlots(alive), []
    while sized := left.take(element(slots, min(8, slots))):
        found.append(sized.slots_per_pilot)
        assert (sized.cores_per_pilot, sized.memory_mb) == (found[-1], 1_000 * found[-1])
    assert found == sizes


def test_pilots_wait_where_there_is_a_queue() -> None:
    left = FreeSlots([live(9, 8)])
    assert left.take(element(20, 8, "slurm")) == element(20, 8, "slurm")
