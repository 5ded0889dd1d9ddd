"""A queue whose turn could not be taken up has the pilot's next one, if it still fits."""

import numpy as np

from services.matcher.turns import QueueTurns
from wms.ids import JobId, PilotId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.queue_index.index import QueueIndex
from wms.site import Resource

ONE, OTHER = PilotId("p-1"), PilotId("p-2")
RESOURCE = Resource(setup="s", vo="v", cpu_time=100, memory_mb=100)


def turns(*, segment: int = 0) -> QueueTurns:
    index = QueueIndex()
    for number, owner in enumerate("ab", 1):
        needs = Requirements(
            owner=owner, owner_group="g", vo="v", setup="s", cpu_segment=segment, min_ram_mb=50
        )
        index.add_queue(TaskQueueId(number), needs)
        index.add_range(TaskQueueId(number), 1.0, JobId(number * 100), JobId(number * 100 + 99))
    return QueueTurns(index, np.random.default_rng(1), {})


def test_the_queue_of_a_job_that_is_put_back_comes_next() -> None:
    drawn = turns()
    for _ in range(20):
        pick = drawn.draw(ONE, RESOURCE)
        assert pick is not None
        drawn.put_back(ONE, pick)
        assert drawn.draw(OTHER, RESOURCE) is not None
        again = drawn.draw(ONE, RESOURCE)
        assert again is not None
        assert again.tq_id == pick.tq_id


def test_a_queue_that_no_longer_fits_loses_its_turn() -> None:
    drawn = turns(segment=50)
    pick = drawn.draw(ONE, RESOURCE)
    assert pick is not None
    for less in (
        Resource(setup="s", vo="v", cpu_time=100, memory_mb=10),
        Resource(setup="s", vo="v", cpu_time=10, memory_mb=100),
    ):
        drawn.put_back(ONE, pick)
        assert drawn.draw(ONE, less) is None
    drawn.put_back(ONE, pick)
    drawn.index.close("", [("owner", "a"), ("owner", "b")])
    assert drawn.draw(ONE, RESOURCE) is None
    drawn.put_back(ONE, pick)
    drawn.index.remove_queue(pick.tq_id)
    drawn.index.close("", [])
    assert drawn.draw(ONE, RESOURCE) is not None, "the other queue is drawn"
