"""A simulated pilot, and all pilots of one VO at one computing element."""

from msgspec.structs import replace

from wms.matching.clauses import beside_others
from wms.provisioning.supply import PilotSupply
from wms.simulation.backlog import SimulatedQueue
from wms.simulation.scenario import SimulatedElement
from wms.site import Resource


class SimulatedPilot:
    """A pilot that runs jobs on its cores, and asks for more jobs while cores are free."""

    __slots__ = ("cores", "ends_at", "idle_since", "memory_mb", "pilot_group", "running")

    def __init__(self, pilot_group: "PilotGroup", ends_at: float) -> None:
        self.pilot_group = pilot_group
        self.cores = pilot_group.place.element.cores_per_pilot
        """How many of the pilot's cores are free now."""
        self.memory_mb = pilot_group.place.element.memory_mb
        """How much of the pilot's memory is free now, in MB."""
        self.running = 0
        self.ends_at = ends_at
        """The time after which the pilot takes no jobs, in seconds of the virtual clock."""
        self.idle_since = 0.0


class PilotGroup:
    """The pilots of one VO at one computing element: how many are ordered and how many run, and which of them ask for a job."""

    __slots__ = ("_resources", "asking", "coming", "number", "place", "running", "vo", "waiting")

    def __init__(self, number: int, place: SimulatedElement, vo: str) -> None:
        self.number = number
        """The index of the computing element in the simulation's list of elements."""
        self.place = place
        self.vo = vo
        self.coming = 0
        self.running = 0
        self.asking: dict[SimulatedPilot, None] = {}
        """The pilots that have free cores and wait for a job, in the order in which they began to wait."""
        self.waiting: dict[SimulatedQueue, None] = {}
        """The task queues with waiting jobs that these pilots may run."""
        self._resources: dict[tuple[int, int], Resource] = {}

    def resource(self, pilot: SimulatedPilot, now: float) -> Resource:
        """Return the resource that the pilot would send in a match request at `now`: its free cores and memory, and the time that it has left."""
        key = (pilot.cores, pilot.memory_mb)
        resource = self._resources.get(key)
        if resource is None:
            whole = self.place.element.pilot_resource(vo=self.vo)
            resource = beside_others(whole, pilot.cores, pilot.memory_mb)
            self._resources[key] = resource
        left = pilot.ends_at - now
        return resource if left >= resource.cpu_time else replace(resource, cpu_time=max(0, int(left)))

    def fitting(self, pilot: SimulatedPilot, now: float) -> list[SimulatedQueue]:
        """Return the task queues whose jobs fit the time, cores and memory that the pilot has left at `now`.

        Of these queues, only those of the highest CPU segment (class of CPU time) are returned.
        """
        seconds = pilot.ends_at - now
        found: list[SimulatedQueue] = []
        highest = 0
        for queue in self.waiting:
            segment = queue.cpu_segment
            if (
                highest <= segment <= seconds
                and queue.cores(self.place.element) <= pilot.cores
                and queue.memory_mb <= pilot.memory_mb
            ):
                if segment > highest:
                    highest = segment
                    found.clear()
                found.append(queue)
        return found

    def pilots(self) -> PilotSupply:
        """Return how many of these pilots are ordered and run, and how many of their cores are free, as the planner of pilots takes it."""
        element = self.place.element
        return PilotSupply(
            site=element.site,
            ce=element.ce,
            vo=self.vo,
            submitted=self.coming,
            running=self.running,
            idle_slots=sum(pilot.cores for pilot in self.asking),
        )
