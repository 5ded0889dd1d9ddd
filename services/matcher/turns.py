"""Draws task queues for pilots, and keeps the turns of queues whose jobs could not start yet."""

from collections.abc import Mapping

import numpy as np

from wms.bounded_cache import BoundedCache
from wms.ids import PilotId, TaskQueueId
from wms.matching.grouping import Requirements
from wms.queue_index.index import Pick, QueueIndex
from wms.site import Resource

PILOTS_LIMIT = 20_000


class QueueTurns:
    """The draw of one matcher. `likely_seconds` has how long jobs of a queue take a slot; jobs of other queues count as long."""

    def __init__(
        self, index: QueueIndex, rng: np.random.Generator, likely_seconds: Mapping[TaskQueueId, float]
    ) -> None:
        self.index = index
        self.likely_seconds = likely_seconds
        self._rng = rng
        self._next = BoundedCache[PilotId, TaskQueueId](PILOTS_LIMIT)
        """The queues that were drawn for pilots without a free slot, and whose jobs are not short."""

    def draw(self, pilot_id: PilotId, resource: Resource) -> Pick | None:
        """Draw a queue that fits, and one of its jobs; None if none fits. A queue that waits for its turn at this pilot comes first."""
        tq_id = self._next.pop(pilot_id, None)
        if tq_id is not None and self.index.gives(tq_id, resource):
            return self.more(tq_id)
        picks = self.index.select(resource, 1, self._rng)
        return picks[0] if picks else None

    def more(self, tq_id: TaskQueueId) -> Pick | None:
        """Draw another job of a queue; None if it has none."""
        return self.index.take(tq_id, self._rng) if self.index.count(tq_id) else None

    def put_back(self, pilot_id: PilotId, pick: Pick) -> None:
        """Put a drawn job back into its queue, which has the pilot's next turn."""
        self.index.restore([pick])
        self._next[pilot_id] = pick.tq_id

    def needs(self, tq_id: TaskQueueId) -> Requirements:
        """Return what the jobs of a queue require."""
        return self.index.requirements(tq_id)
