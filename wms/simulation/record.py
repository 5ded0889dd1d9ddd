"""The record of a simulation: the times and the outcome of each job, and what each attempt used."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from wms.matching.grouping import Requirements
from wms.simulation.scenario import SimulatedElement
from wms.simulation.workload import WorkloadJob

NEVER = -1.0


class Attempts:
    """All attempts of jobs in a simulation, in the order of their ends. Each attribute is an array with one value for each attempt."""

    def __init__(self) -> None:
        self.job = array("q")
        self.element = array("q")
        self.started = array("d")
        self.ended = array("d")
        self.cores = array("q")

    def __len__(self) -> int:
        return len(self.job)

    def add(self, job: int, element: int, started: float, ended: float, cores: int) -> None:
        """Add an attempt that ended. `job` and `element` are numbers of a job and a computing element; times are in seconds of the virtual clock."""
        self.job.append(job)
        self.element.append(element)
        self.started.append(started)
        self.ended.append(ended)
        self.cores.append(cores)


class Stuck(NamedTuple):
    """The number of jobs with these requirements that fit no site at any time, and the reasons."""

    requirements: Requirements
    jobs: int
    reasons: tuple[str, ...]


class SimulationRecord:
    """What happened in a simulation. Jobs and computing elements are given by their index. The time of an event that never happened is `NEVER`."""

    def __init__(self, arrivals: Sequence[WorkloadJob], places: Sequence[SimulatedElement]) -> None:
        self.places = places
        self.arrivals = arrivals
        self.asked: list[Requirements] = []
        """The requirements of each job, after this scenario's changes to them."""
        self.first_start = array("d", [NEVER]) * len(arrivals)
        self.ended = array("d", [NEVER]) * len(arrivals)
        self.attempts = array("q", [0]) * len(arrivals)
        self.done = bytearray(len(arrivals))
        """For each job, 1 if it ran to its end, else 0."""
        self.runs = Attempts()
        self.pilots = 0
        self.stuck: list[Stuck] = []
