"""The waiting jobs of a simulation, by kind of work. Which computing elements fit each kind is computed once, at the start."""

from collections.abc import Iterable, Sequence
from functools import partial

from wms.matching.grouping import Requirements, slots_needed
from wms.provisioning.demand import (
    QueuedWork,
    Unservable,
    WorkKind,
    asked_of_jobs,
    gather,
    kind_of,
    required_of_jobs,
)
from wms.site import ComputingElement


class SimulatedQueue:
    """A task queue of the simulation: its requirements, the computing elements that fit them, and how many jobs wait in it."""

    __slots__ = ("cpu_segment", "jobs", "kind", "memory_mb", "number", "processors", "requirements", "vo")

    def __init__(self, number: int, requirements: Requirements, kind: WorkKind) -> None:
        self.number = number
        self.requirements = requirements
        self.kind = kind
        self.jobs = 0
        self.vo = requirements.vo
        self.processors = slots_needed(requirements)
        self.memory_mb = requirements.min_ram_mb
        self.cpu_segment = requirements.cpu_segment

    def cores(self, element: ComputingElement) -> int:
        """Return how many cores a job of the queue uses in a pilot of this computing element: at most all cores of the pilot."""
        return min(self.processors, element.cores_per_pilot)


class WaitingWork:
    """The task queues of a simulation, and how many jobs wait of each kind. Queues that differ only in owner and group are of one kind."""

    def __init__(self, asked: Iterable[Requirements], elements: Sequence[ComputingElement]) -> None:
        asked = list(dict.fromkeys(asked))
        found = gather([QueuedWork(each, 1) for each in asked], elements)
        kinds = {kind.requirements: kind for kind in found.kinds}
        own = partial(kind_of, asked=asked_of_jobs(elements), required=required_of_jobs(elements))
        self.unservable: dict[Requirements, Unservable] = {
            each.requirements: each for each in found.unservable
        }
        self.queues = [
            SimulatedQueue(number, each, kinds.get(own(each)) or WorkKind(own(each), 0, 1, ()))
            for number, each in enumerate(asked, 1)
        ]
        self.by_requirements = {queue.requirements: queue for queue in self.queues}
        self._waiting: dict[Requirements, int] = {}
        self._kinds = kinds

    def add(self, queue: SimulatedQueue, jobs: int) -> None:
        """Add `jobs` waiting jobs to a queue; a negative number removes them."""
        queue.jobs += jobs
        kind = queue.kind.requirements
        if queue.kind.elements:
            left = self._waiting.get(kind, 0) + jobs
            if left:
                self._waiting[kind] = left
            else:
                del self._waiting[kind]

    def __bool__(self) -> bool:
        """Return whether any waiting job fits a computing element."""
        return bool(self._waiting)

    def kinds(self) -> list[tuple[WorkKind, int]]:
        """Return the kinds of waiting work that fit some computing element, each with its number of waiting jobs."""
        return [(self._kinds[kind], jobs) for kind, jobs in self._waiting.items()]

    def stuck(self) -> list[tuple[SimulatedQueue, tuple[str, ...]]]:
        """Return the queues with waiting jobs that fit no computing element, each with the reasons why not."""
        return [
            (queue, self.unservable[queue.kind.requirements].reasons)
            for queue in self.queues
            if queue.jobs and queue.kind.requirements in self.unservable
        ]
