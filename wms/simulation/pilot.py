"""A pilot of a simulation, and the pilots of one VO on one computing element."""

from msgspec.structs import replace

from wms.matching.clauses import beside_others
from wms.provisioning.supply import PilotSupply
from wms.simulation.backlog import Queue
from wms.simulation.scenario import SimulatedElement
from wms.site import Resource


class SimulatedPilot:
    """A pilot that runs jobs on its cores, and requests more jobs while cores are free."""

    __slots__ = ("cores", "ends_at", "idle_since", "memory_mb", "running", "squad")

    def __init__(self, squad: "Squad", ends_at: float) -> None:
        self.squad = squad
        self.cores = squad.place.element.cores_per_pilot
        """The number of free cores."""
        self.memory_mb = squad.place.element.memory_mb
        """The free memory in MB."""
        self.running = 0
        self.ends_at = ends_at
        """The time in seconds after which the pilot accepts no jobs."""
        self.idle_since = 0.0


class Squad:
    """The pilots of a VO on an element: ordered ones, running ones, and those that request a job."""

    __slots__ = ("_resources", "asking", "coming", "number", "place", "running", "vo", "waiting")

    def __init__(self, number: int, place: SimulatedElement, vo: str) -> None:
        self.number = number
        """The index of the element in the simulation."""
        self.place = place
        self.vo = vo
        self.coming = 0
        self.running = 0
        self.asking: dict[SimulatedPilot, None] = {}
        """The pilots that request jobs, in the order of their requests."""
        self.waiting: dict[Queue, None] = {}
        """The queues with waiting jobs that the squad's pilots may run."""
        self._resources: dict[tuple[int, int], Resource] = {}

    def resource(self, pilot: SimulatedPilot, now: float) -> Resource:
        """Return the resource description in a pilot's match request."""
        key = (pilot.cores, pilot.memory_mb)
        resource = self._resources.get(key)
        if resource is None:
            whole = self.place.element.pilot_resource(vo=self.vo)
            resource = beside_others(whole, pilot.cores, pilot.memory_mb)
            self._resources[key] = resource
        left = pilot.ends_at - now
        return resource if left >= resource.cpu_time else replace(resource, cpu_time=max(0, int(left)))

    def fitting(self, pilot: SimulatedPilot, now: float) -> list[Queue]:
        """Return the waiting queues of the highest CPU segment that fit the time, cores and memory left in a pilot.

        Queues in `waiting` fit the squad in all other respects.
        """
        seconds = pilot.ends_at - now
        found: list[Queue] = []
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
        """Return the pilot counts that the planner uses."""
        element = self.place.element
        return PilotSupply(
            site=element.site,
            ce=element.ce,
            vo=self.vo,
            submitted=self.coming,
            running=self.running,
            idle_slots=sum(pilot.cores for pilot in self.asking),
        )
