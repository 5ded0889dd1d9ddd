"""One simulation: jobs arrive, pilots ask for jobs, the queue index draws jobs, jobs run and end. Every decision is the real system's own.

`QueueIndex.select` draws jobs, `wms.provisioning.plan` plans pilots, and `wms.job.job` decides whether a lost attempt is repeated. Only
conditions outside of the system are modelled: run times, the latency of pilots, and the attempts that sites lose. Each purpose has its own
stream of random numbers, and an attempt's random numbers depend on its job. So two scenarios with one seed differ only by their decisions.
"""

from collections import Counter
from collections.abc import Callable, Collection
from math import ceil, inf
from typing import NamedTuple, Protocol

import numpy as np

from wms.ids import CeId, Epoch, JobId, TaskQueueId
from wms.job.job import Job, lost
from wms.job.reasons import Code, Reason
from wms.job.state import State
from wms.provisioning.demand import Demand
from wms.provisioning.plan import PlannedPilots, orders
from wms.provisioning.supply import PilotSupply
from wms.queue_index.index import Pick, QueueIndex
from wms.simulation.agenda import Agenda
from wms.simulation.backlog import SimulatedQueue, WaitingWork
from wms.simulation.limiting import Limiting
from wms.simulation.pilot import PilotGroup, SimulatedPilot
from wms.simulation.record import NEVER, SimulationRecord, Stuck
from wms.simulation.scenario import Scenario, places
from wms.simulation.workload import Workload
from wms.site import Resource

LOST = Reason(Code.AGENT_ERROR, "the site lost it")


class Run(NamedTuple):
    """One attempt of a job (given by its index) on a simulated pilot. `lost` says whether the site will lose the attempt."""

    job: int
    queue: SimulatedQueue
    pilot: SimulatedPilot
    started: float
    lost: bool


class Watcher(Protocol):
    """An observer of a simulation's decisions. Tests implement it."""

    def queued(self, job: int, queue: SimulatedQueue) -> None:
        """Called when a job, given by its index, begins to wait in a task queue."""

    def matched(self, job: int, resource: Resource, now: float) -> None:
        """Called when a pilot with this resource gets a job, given by its index. `now` is in seconds of the virtual clock."""


class Simulation:
    """A simulation of a workload under one scenario. Call `run` once: it simulates all jobs and returns the record."""

    def __init__(self, workload: Workload, scenario: Scenario, watcher: Watcher | None = None) -> None:
        self._scenario = scenario
        self._arrivals = workload.arrivals
        self._places = places(scenario, workload)
        self._agenda = Agenda()
        distinct = {id(job.requirements): job.requirements for job in self._arrivals}
        asked = {key: scenario.asked(each) for key, each in distinct.items()}
        self._backlog = WaitingWork(asked.values(), [place.element for place in self._places])
        self._queue_of = {key: self._backlog.by_requirements[each] for key, each in asked.items()}
        self._index = QueueIndex(groups=scenario.groups, law=scenario.draw)
        for queue in self._backlog.queues:
            self._index.add_queue(TaskQueueId(queue.number), queue.requirements)
        self._limiting = Limiting(scenario.limits, self._index)
        self._pilot_groups: dict[tuple[int, str], PilotGroup] = {}
        self._manned: dict[PilotGroup, None] = {}
        """The groups of pilots (one for each VO and computing element) that have any pilot, ordered or running."""
        self._taken = [0] * len(self._places)
        """How many pilots there are at each computing element, ordered or running, of all VOs together."""
        self._by_vo: Counter[str] = Counter()
        self._roomy = set(range(len(self._places)))
        """The indices of the computing elements that have fewer pilots than they allow."""
        self._numbers = {place.element.ce_id: n for n, place in enumerate(self._places)}
        self._planning = False
        self._round = -1
        self._running = 0
        self._moved_at = 0.0
        """When a job last arrived, started or ended, in seconds of the virtual clock."""
        self._patience = _patience(scenario)
        self._watcher = watcher
        streams = np.random.SeedSequence(scenario.seed).spawn(3)
        self._draws, self._wakes = (np.random.default_rng(stream) for stream in streams[:2])
        self._luck = _luck(len(workload.arrivals), scenario, streams[2])
        self.record = SimulationRecord(workload.arrivals, self._places)

    def run(self, tell: Callable[[int], None] = lambda _: None) -> SimulationRecord:
        """Simulate the whole workload and return the record.

        `tell` is called after each 1,000 arrivals, and at the end, with the number of jobs that have arrived.
        """
        agenda, arrivals = self._agenda, self._arrivals
        coming = 0
        while coming < len(arrivals):
            at = arrivals[coming].at
            while agenda.next_at <= at:
                agenda.step()
            agenda.now = at
            self._arrive(coming)
            coming += 1
            if not coming % 1000:
                tell(coming)
        while agenda.next_at < inf:
            agenda.step()
        tell(coming)
        self._note_stuck()
        return self.record

    # --- jobs -------------------------------------------------------------------------------------

    def _arrive(self, job: int) -> None:
        self._moved_at = self._agenda.now
        queue = self._queue_of[id(self._arrivals[job].requirements)]
        self.record.asked.append(queue.requirements)
        self._enqueue(job, queue)

    def _enqueue(self, job: int, queue: SimulatedQueue) -> None:
        self._index.add(TaskQueueId(queue.number), self._arrivals[job].user_priority, (JobId(job + 1),))
        self._backlog.add(queue, 1)
        if queue.jobs == 1:
            for number in queue.kind.elements:
                self._pilot_group(number, queue.vo).waiting[queue] = None
        if self._watcher:
            self._watcher.queued(job, queue)
        self._wake(queue)
        if queue.jobs and queue.kind.elements:
            self._plan_soon()

    def _dequeue(self, queue: SimulatedQueue) -> None:
        self._backlog.add(queue, -1)
        if not queue.jobs:
            for number in queue.kind.elements:
                del self._pilot_groups[number, queue.vo].waiting[queue]

    def _wake(self, queue: SimulatedQueue) -> None:
        """Let the waiting pilots that may run jobs of the queue ask again, until one gets a job.

        The groups of pilots, one for each computing element, ask in random order.
        """
        pilot_groups = [
            pilot_group
            for number in queue.kind.elements
            if (pilot_group := self._pilot_groups[number, queue.vo]).asking
        ]
        while pilot_groups:
            at = int(self._wakes.random() * len(pilot_groups)) if len(pilot_groups) > 1 else 0
            if self._ask_all(pilot_groups.pop(at)):
                return

    def _ask_all(self, pilot_group: PilotGroup) -> bool:
        """Let the waiting pilots of a group ask again, until one gets a job; return whether one did. Of pilots with equal resources only one asks."""
        refused: set[Resource] = set()
        for pilot in list(pilot_group.asking):
            resource = pilot_group.resource(pilot, self._agenda.now)
            if resource not in refused and self._ask(pilot):
                return True
            refused.add(resource)
        return False

    # --- pilots -----------------------------------------------------------------------------------

    def _ask(self, pilot: SimulatedPilot) -> bool:
        """Let a pilot fill its free cores with jobs; return whether it got any."""
        pilot_group, given = pilot.pilot_group, False
        while pilot.cores and (pick := self._pick(pilot)):
            given = True
            self._start(pilot, pick)
        if pilot.cores and self._agenda.now < pilot.ends_at:
            pilot_group.asking.setdefault(pilot)
        else:
            pilot_group.asking.pop(pilot, None)
        return given

    def _pick(self, pilot: SimulatedPilot) -> Pick | None:
        """Draw a job for a pilot from the queue index; None if no queue fits. If one queue alone fits, its first job is taken without a draw."""
        now = self._agenda.now
        fitting = pilot.pilot_group.fitting(pilot, now) if pilot.pilot_group.waiting else []
        if not fitting:
            return None
        element = pilot.pilot_group.place.element
        if len(fitting) == 1 and not self._watcher and not self._index.closed(element.site, element.ce):
            return self._index.take(TaskQueueId(fitting[0].number), self._draws)
        resource = pilot.pilot_group.resource(pilot, now)
        picks = self._index.select(resource, 1, self._draws)
        if picks and self._watcher:
            self._watcher.matched(picks[0].job_id - 1, resource, now)
        return picks[0] if picks else None

    def _start(self, pilot: SimulatedPilot, pick: Pick) -> None:
        job, queue = pick.job_id - 1, self._backlog.queues[pick.tq_id - 1]
        record, now, place = self.record, self._agenda.now, pilot.pilot_group.place
        self._dequeue(queue)
        if self._limiting:
            self._count_in(queue, pilot.pilot_group)
        if record.first_start[job] == NEVER:
            record.first_start[job] = now
        pilot.cores -= queue.cores(place.element)
        pilot.memory_mb -= queue.memory_mb
        pilot.running += 1
        self._running += 1
        seconds = self._arrivals[job].run_seconds / place.speed
        misses, part = self._luck(job, record.attempts[job])
        fails = misses < place.failure
        record.attempts[job] += 1
        self._agenda.after(
            seconds * part if fails else seconds, self._end, Run(job, queue, pilot, now, fails)
        )

    def _end(self, run: Run) -> None:
        pilot, pilot_group, now = run.pilot, run.pilot.pilot_group, self._agenda.now
        cores = run.queue.cores(pilot_group.place.element)
        self.record.runs.add(run.job, pilot_group.number, run.started, now, cores)
        pilot.cores += cores
        pilot.memory_mb += run.queue.memory_mb
        pilot.running -= 1
        self._running -= 1
        self._moved_at = now
        if self._limiting and self._limiting.ended(run.queue.requirements, pilot_group.place.element, now):
            self._agenda.after(0.0, self._wake_site, pilot_group.place.element.site)
        if run.lost and self._comes_back(run.job):
            self._enqueue(run.job, run.queue)
        else:
            self.record.ended[run.job] = now
            self.record.done[run.job] = not run.lost
        self._go_on(pilot)

    def _count_in(self, queue: SimulatedQueue, pilot_group: PilotGroup) -> None:
        element = pilot_group.place.element
        opens = self._limiting.matched(queue.requirements, element, self._agenda.now)
        if opens < inf:
            self._agenda.after(opens, self._refill, (queue, pilot_group))

    def _refill(self, spent: tuple[SimulatedQueue, PilotGroup]) -> None:
        """Open the rate limits that allow a start again by now, and let the site's pilots ask. `spent` is the queue and pilots of the last start."""
        queue, pilot_group = spent
        if self._limiting.open_due(queue.requirements, pilot_group.place.element, self._agenda.now):
            self._wake_site(pilot_group.place.element.site)

    def _wake_site(self, site: str) -> None:
        """Let all waiting pilots of a site ask again, until none gets a job."""
        for pilot_group in [each for each in self._manned if each.asking and each.place.element.site == site]:
            while self._ask_all(pilot_group):
                pass

    def _comes_back(self, job: int) -> bool:
        """Return whether a job is queued again after a lost attempt, as the job state machine decides."""
        asked = self.record.asked[job]
        facts = Job(
            job_id=JobId(job + 1), state=State.RUNNING, epoch=Epoch(self.record.attempts[job]), event_seq=0,
            attempts=self.record.attempts[job], max_attempts=self._scenario.attempts, stop_requested="",
            tq_id=TaskQueueId(1), user_priority=1.0, owner=asked.owner, owner_group=asked.owner_group, vo=asked.vo,
        )  # fmt: skip
        return lost(facts, LOST)[-1].state is State.WAITING

    def _go_on(self, pilot: SimulatedPilot) -> None:
        """Let a pilot ask for jobs. If it then runs none, it ends at once after its lifetime, else after its time to idle."""
        self._ask(pilot)
        if not pilot.running:
            if self._agenda.now >= pilot.ends_at:
                self._leave(pilot)
            else:
                pilot.idle_since = self._agenda.now
                self._agenda.after(self._scenario.pilots.idle_seconds, self._idle_out, pilot)

    def _idle_out(self, pilot: SimulatedPilot) -> None:
        idle = self._scenario.pilots.idle_seconds
        if not pilot.running and pilot.idle_since + idle <= self._agenda.now:
            self._leave(pilot)

    def _leave(self, pilot: SimulatedPilot) -> None:
        pilot_group = pilot.pilot_group
        pilot_group.asking.pop(pilot, None)
        pilot_group.running -= 1
        self._man(pilot_group, -1)
        if self._backlog:
            self._plan_soon()

    # --- provisioning -----------------------------------------------------------------------------

    def _plan_soon(self) -> None:
        """Plan pilots at the next multiple of the planning period, unless that is under way already."""
        if not self._planning:
            self._planning = True
            every = self._scenario.pilots.plan_every_seconds
            self._round = max(ceil(self._agenda.now / every), self._round + 1)
            self._agenda.after(max(0.0, self._round * every - self._agenda.now), self._plan, None)

    def _plan(self, _: None) -> None:
        self._planning = False
        if not self._backlog or self._is_over():
            return
        for order in self._orders():
            number = self._numbers[CeId(order.site, order.ce)]
            pilot_group = self._pilot_group(number, order.vo)
            pilot_group.coming += order.count
            self._man(pilot_group, order.count)
            self.record.pilots += order.count
            for _each in range(order.count):
                self._agenda.after(self._scenario.pilots.latency_seconds, self._come, pilot_group)

    def _is_over(self) -> bool:
        """Return whether the waiting jobs can never start: no job runs, and the last pilot or rate limit that could help has had its time."""
        return not self._running and self._agenda.now > self._moved_at + self._patience

    def _orders(self) -> tuple[PlannedPilots, ...]:
        """Plan pilots for the waiting work. Only computing elements with free slots, or that allow more pilots, are considered."""
        useful = {
            pilot_group.number for pilot_group in self._manned if pilot_group.coming or pilot_group.asking
        } | self._roomy
        kinds = [
            (kind, jobs, elements)
            for kind, jobs in self._backlog.kinds()
            if (elements := [number for number in kind.elements if number in useful])
        ]
        if not kinds:
            return ()
        reached = sorted({number for _, _, elements in kinds for number in elements})
        renumbered = {number: place for place, number in enumerate(reached)}
        pilots = self._pilots(renumbered)
        ads = [self._places[number].element for number in reached]
        waiting = [
            kind._replace(jobs=jobs, elements=tuple(renumbered[number] for number in elements))
            for kind, jobs, elements in kinds
        ]
        return orders(Demand(waiting, [], []), ads, pilots, self._scenario.pilots.caps)

    def _pilots(self, reached: Collection[int]) -> list[PilotSupply]:
        """Return the numbers of pilots at these computing elements, and for each VO the number of its pilots at all other elements."""
        elsewhere = self._by_vo.copy()
        here = [pilot_group for pilot_group in self._manned if pilot_group.number in reached]
        for pilot_group in here:
            elsewhere[pilot_group.vo] -= pilot_group.coming + pilot_group.running
        rest = [PilotSupply(site="", ce="", vo=vo, running=count) for vo, count in elsewhere.items() if count]
        return [pilot_group.pilots() for pilot_group in here] + rest

    def _man(self, pilot_group: PilotGroup, pilots: int) -> None:
        """Add `pilots` to the counts of a group's pilots; a negative number removes some."""
        number = pilot_group.number
        self._taken[number] += pilots
        self._by_vo[pilot_group.vo] += pilots
        if self._taken[number] < self._places[number].element.pilot_limit:
            self._roomy.add(number)
        else:
            self._roomy.discard(number)
        if pilot_group.coming + pilot_group.running:
            self._manned[pilot_group] = None
        else:
            self._manned.pop(pilot_group, None)

    def _pilot_group(self, number: int, vo: str) -> PilotGroup:
        pilot_group = self._pilot_groups.get((number, vo))
        if pilot_group is None:
            pilot_group = self._pilot_groups[number, vo] = PilotGroup(number, self._places[number], vo)
        return pilot_group

    def _come(self, pilot_group: PilotGroup) -> None:
        """Start one ordered pilot of the group, and let it ask for jobs. Called when the pilot's latency is over."""
        pilot_group.coming -= 1
        pilot_group.running += 1
        self._go_on(SimulatedPilot(pilot_group, self._agenda.now + self._scenario.pilots.lifetime_seconds))
        if self._backlog:
            self._plan_soon()

    def _note_stuck(self) -> None:
        self.record.stuck = [
            Stuck(queue.requirements, queue.jobs, reasons) for queue, reasons in self._backlog.stuck()
        ]


def _patience(scenario: Scenario) -> float:
    """Return for how many seconds no job may arrive, start or end before the simulation is over.

    By then, every ordered pilot has started and ended, and every rate limit has allowed another start.
    """
    rules = scenario.pilots
    token = max((1 / limit.per_second for limit in scenario.limits if limit.per_second), default=0.0)
    return rules.latency_seconds + rules.idle_seconds + 4 * rules.plan_every_seconds + token


def _luck(
    jobs: int, scenario: Scenario, seed: np.random.SeedSequence
) -> Callable[[int, int], tuple[float, float]]:
    """Return a function that takes the index of a job and of its attempt, and returns two random numbers in [0, 1).

    The attempt is lost if the first number is below the site's failure rate. It is lost after the second number's fraction of its run time.
    """
    numbers = np.random.default_rng(seed).random((scenario.attempts, jobs, 2))

    def meets(job: int, attempt: int) -> tuple[float, float]:
        return numbers[attempt, job, 0], numbers[attempt, job, 1]

    return meets
