"""Which task queues a plan looks at: all but those whose expressions take long to parse, of which it looks at some in turn."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from wms.ids import TaskQueueId
from wms.taskqueue.conjuncts import is_long, length
from wms.taskqueue.grouping import Requirements

K = TypeVar("K", str, TaskQueueId)

CHARACTERS = 30_000
"""Of long expressions that one plan looks at: each thousand takes some milliseconds, in every plan."""


class InTurn:
    """Remembers how much plans have looked at: the next queue is one of the owner of whose expressions they saw least."""

    def __init__(self) -> None:
        self._queues: dict[TaskQueueId, int] = {}
        self._owners: dict[str, int] = {}

    def choose(self, waiting: Mapping[TaskQueueId, Requirements]) -> set[TaskQueueId]:
        """Return the queues that the next plan looks at."""
        long = {tq_id: each for tq_id, each in waiting.items() if is_long(each)}
        chosen, left = waiting.keys() - long.keys(), CHARACTERS
        self._queues = _levelled(self._queues, long)
        self._owners = _levelled(self._owners, {each.owner for each in long.values()})
        for _ in range(len(long)):
            tq_id = self._next(long)
            size = length(long[tq_id])
            if size > left and left < CHARACTERS:
                break
            left -= size
            chosen.add(tq_id)
            self._queues[tq_id] += size
            self._owners[long.pop(tq_id).owner] += size
        return chosen

    def _next(self, long: Mapping[TaskQueueId, Requirements]) -> TaskQueueId:
        return min(long, key=lambda each: (self._owners[long[each].owner], self._queues[each], each))


def _levelled(seen: Mapping[K, int], names: Iterable[K]) -> dict[K, int]:
    """Return what was seen of these; what comes anew begins where the others are: what was not used before is no claim."""
    known = {each: seen[each] for each in names if each in seen}
    least = min(known.values(), default=0)
    return {each: known.get(each, least) for each in names}
