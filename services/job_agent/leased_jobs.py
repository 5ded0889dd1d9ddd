"""The jobs that a pilot has accepted and not finished, and the processors, memory and disk that they take."""

from collections.abc import Iterable, Iterator

import msgspec

from services.job_agent.offered_job import DecodedOffer
from services.job_agent.payload.run import Payload
from services.job_agent.prefetch import SlotTime
from wms.bounded_cache import BoundedCache
from wms.ids import AttemptId
from wms.jobdesc.description import JobDescription
from wms.messages.reports import StagingReport, UsageOverTime, UsagePoint

PAST_LIMIT = 4_096


class LeasedJob(msgspec.Struct, kw_only=True, eq=False):
    """One attempt of a job on this pilot, from the acceptance of its offer to its end. Its fields are changed as it proceeds."""

    attempt_id: AttemptId
    owner: str
    description: JobDescription
    fault: str = ""
    """Why this agent cannot read the job's description. Empty if it can."""
    expires_at: float | None = None
    """The end of the lease, in seconds since boot as `shepherd.now` returns them. None until the lease is granted."""
    ready_at: float = 0.0
    kill_ordered: bool = False
    lost: bool = False
    payload: Payload | None = None
    began_at: float = 0.0
    processors: int = 1
    """The number of the pilot's slots that the job takes, one for each processor."""
    needs_gpus: int = 0
    """The number of GPUs that the job takes while it runs."""
    gpus: tuple[str, ...] = ()
    """The GPUs that the job has, by their names in CUDA_VISIBLE_DEVICES. Empty until it starts."""
    cpus: tuple[int, ...] = ()
    """The processors that the job has, by their numbers, if the pilot shares them out. Empty until it starts."""
    likely_seconds: float | None = None
    """How long most such jobs take a slot. None if that is unknown."""

    @property
    def disk_mb(self) -> int:
        """The disk space that the job requested, in MiB. 0 if it requested none."""
        return self.description.disk_mb or 0

    @property
    def memory_mb(self) -> int:
        """The memory that the job requested, in MiB. 0 if it requested none."""
        return self.description.memory_mb or 0


class LeasedJobs:
    """All jobs that a pilot has accepted and not finished.

    `slots`, `memory_mb` (MiB), `gpus` (names) and `cpus` (numbers) are what the pilot has for all of them. Without `cpus`
    its processors are not shared out.
    """

    def __init__(
        self, slots: int, memory_mb: int, gpus: tuple[str, ...] = (), cpus: tuple[int, ...] = ()
    ) -> None:
        self._slots = slots
        self._memory_mb = memory_mb
        self._gpus = gpus
        self._cpus = cpus
        self._all: dict[AttemptId, LeasedJob] = {}
        self._line: list[LeasedJob] = []
        self._past = BoundedCache[AttemptId, None](PAST_LIMIT)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[LeasedJob]:
        return iter(list(self._all.values()))

    def get(self, attempt_id: AttemptId) -> LeasedJob | None:
        """Return the job with this attempt id. None if the pilot does not hold it now."""
        return self._all.get(attempt_id)

    def knows(self, attempt_id: AttemptId) -> bool:
        """Return whether the pilot holds this attempt or accepted it before. The last 4096 accepted attempts are remembered."""
        return attempt_id in self._all or attempt_id in self._past

    def take(self, offered: DecodedOffer) -> LeasedJob:
        """Add an offered job, which the pilot accepts, and return it. The services have not granted its lease yet."""
        attempt_id = offered.attempt_id
        holding = self._all[attempt_id] = LeasedJob(
            attempt_id=attempt_id,
            owner=offered.job.owner,
            description=offered.description,
            fault=offered.fault,
            processors=offered.slots(self._slots),
            needs_gpus=min(offered.gpus, len(self._gpus)),
            likely_seconds=offered.job.likely_seconds,
        )
        self._past[attempt_id] = None
        return holding

    def drop(self, holding: LeasedJob) -> None:
        """Remove a job from the pilot's jobs, and from the queue of jobs that may start. Its payload is not stopped."""
        self._all.pop(holding.attempt_id, None)
        if holding in self._line:
            self._line.remove(holding)

    # --- what is taken ---

    @property
    def running(self) -> list[LeasedJob]:
        """The jobs whose payloads were started and have not ended."""
        return [each for each in self._all.values() if each.payload is not None]

    @property
    def staging(self) -> tuple[StagingReport, ...]:
        """How far the transfers of input and output files are, for each running job whose files are moving now."""
        found = (each.payload.staging.report for each in self.running if each.payload)
        return tuple(each for each in found if each)

    def usage(self, limit: int) -> list[UsageOverTime]:
        """Return how much CPU time and memory running jobs used over time, for at most `limit` of them.

        Only jobs with points that no earlier call returned are included.
        """
        found: list[UsageOverTime] = []
        for each in self.running:
            points = each.payload.new_points() if each.payload and len(found) < limit else ()
            if points:
                found.append(usage_of(each.attempt_id, points))
        return found

    @property
    def granted(self) -> list[LeasedJob]:
        """The jobs whose leases the services have granted, whether their payloads run or not."""
        return [each for each in self._all.values() if each.expires_at is not None]

    @property
    def processors(self) -> int:
        """The number of slots that all held jobs take, running or not."""
        return processors(self._all.values())

    @property
    def busy(self) -> int:
        """The number of slots that running jobs take."""
        return processors(self.running)

    @property
    def memory_mb(self) -> int:
        """The memory that all held jobs requested together, running or not, in MiB."""
        return sum(each.memory_mb for each in self._all.values())

    @property
    def disk_mb(self) -> int:
        """The disk space that all held jobs requested together, running or not, in MiB."""
        return sum(each.disk_mb for each in self._all.values())

    @property
    def unclaimed_gpus(self) -> int:
        """The number of GPUs that no held job takes, running or not; at least 0."""
        return max(0, len(self._gpus) - sum(each.needs_gpus for each in self._all.values()))

    @property
    def _free_gpus(self) -> list[str]:
        taken = {name for each in self._all.values() for name in each.gpus}
        return [name for name in self._gpus if name not in taken]

    @property
    def free_memory_mb(self) -> int:
        """The pilot's memory less what running jobs requested, in MiB; at least 0."""
        return max(0, self._memory_mb - sum(each.memory_mb for each in self.running))

    # --- the queue of jobs that may start ---

    def make_ready(self, holding: LeasedJob, now: float) -> None:
        """Append a job with a granted lease to the queue of jobs that may start. `now` is in seconds since boot."""
        holding.ready_at = now
        self._line.append(holding)

    def next_to_start(self) -> LeasedJob | None:
        """Remove and return the first job of the queue, if the free slots, memory and GPUs suffice for it. Else return None.

        No later job is started before it, since a job of many slots would otherwise wait for ever. A job with a range of
        processors also gets unused slots, up to the end of its range. If nothing runs, the first job is returned whatever it
        needs.
        """
        if not self._line or not self._fits(self._line[0]):
            return None
        holding = self._line.pop(0)
        holding.processors += self._more_for(holding)
        holding.gpus = tuple(self._free_gpus[: holding.needs_gpus])
        taken = {number for each in self._all.values() for number in each.cpus}
        free = [number for number in self._cpus if number not in taken]
        holding.cpus = tuple(free[: holding.processors])
        return holding

    def _more_for(self, holding: LeasedJob) -> int:
        """Return how many slots a job with a range of processors can have beyond its minimum: those that no held job takes.

        It is 0 for jobs without a range and for those of whole nodes.
        """
        description = holding.description
        if description.min_processors is None or description.whole_node:
            return 0
        most = description.max_processors or self._slots
        return max(0, min(most - holding.processors, self._slots - self.processors))

    def _fits(self, holding: LeasedJob) -> bool:
        running = self.running
        if not running:
            return True
        memory = sum(each.memory_mb for each in running) + holding.memory_mb
        if holding.needs_gpus > len(self._free_gpus):
            return False
        return processors(running) + holding.processors <= self._slots and memory <= self._memory_mb

    def stale(self, since: float) -> list[LeasedJob]:
        """Return the queued jobs that were queued at `since` (seconds since boot) or earlier."""
        return [each for each in self._line if each.ready_at <= since]

    def running_times(self, now: float) -> list[SlotTime]:
        """Return how running jobs take slots. `now` is in seconds since boot."""
        return [SlotTime(each.processors, each.likely_seconds, now - each.began_at) for each in self.running]

    @property
    def line_times(self) -> list[SlotTime]:
        """How the jobs that do not run yet will take slots, whether their leases are granted or not."""
        return [
            SlotTime(each.processors, each.likely_seconds)
            for each in self._all.values()
            if each.payload is None
        ]

    @property
    def line(self) -> list[LeasedJob]:
        """The queue of jobs with a lease that wait for free slots, in the order in which they will start."""
        return list(self._line)


def usage_of(attempt_id: AttemptId, points: tuple[UsagePoint, ...]) -> UsageOverTime:
    """Return the entry of a report with the CPU time and memory that an attempt used over time."""
    return UsageOverTime(job_id=attempt_id.job_id, epoch=attempt_id.epoch, points=points)


def processors(holdings: Iterable[LeasedJob]) -> int:
    """Return how many slots these jobs take together."""
    return sum(each.processors for each in holdings)
