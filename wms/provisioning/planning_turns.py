"""Chooses the task queues that a plan looks at: those whose expressions take long to evaluate take turns, by owner."""

from collections.abc import Mapping

from wms.fairness import levelled
from wms.ids import TaskQueueId
from wms.matching.grouping import Requirements

LONG = 500
"""The number of characters above which expressions are long."""
CHARACTERS = 30_000
"""The most characters of long expressions that one plan evaluates. Queues beyond that wait for a later plan.

A plan looks at one long expression at least, whatever its length. A thousand characters take some milliseconds.
"""


class PlanningTurns:
    """Counts for each owner the characters of long expressions in past plans. The owner with the fewest is served next."""

    def __init__(self) -> None:
        self._queues: dict[TaskQueueId, int] = {}
        self._owners: dict[str, int] = {}

    def choose(self, waiting: Mapping[TaskQueueId, Requirements]) -> set[TaskQueueId]:
        """Return the queues for the next plan: all with short expressions, and as many with long ones as `CHARACTERS` allows.

        The characters of the chosen long expressions are counted for their owners.
        """
        long = {tq_id: each for tq_id, each in waiting.items() if _length(each) > LONG}
        chosen, left = waiting.keys() - long.keys(), CHARACTERS
        self._queues = levelled(self._queues, long, 0)
        self._owners = levelled(self._owners, {each.owner for each in long.values()}, 0)
        for _ in range(len(long)):
            tq_id = self._next(long)
            size = _length(long[tq_id])
            if size > left and left < CHARACTERS:
                break
            left -= size
            chosen.add(tq_id)
            self._queues[tq_id] += size
            self._owners[long.pop(tq_id).owner] += size
        return chosen

    def _next(self, long: Mapping[TaskQueueId, Requirements]) -> TaskQueueId:
        return min(long, key=lambda each: (self._owners[long[each].owner], self._queues[each], each))


def _length(requirements: Requirements) -> int:
    return len(requirements.requirements) + len(requirements.rank) + len(requirements.attributes)
