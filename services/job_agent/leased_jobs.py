"""The jobs that a pilot has accepted and not finished, and the processors, memory and disk that they take."""

from collections.abc import Iterable, Iterator

import msgspec

from services.job_agent.offered_job import DecodedOffer
from services.job_agent.payload.run import Payload
from wms.bounded_cache import BoundedCache
from wms.ids import AttemptId
from wms.jobdesc.description import JobDescription
from wms.messages.reports import StagingReport, UsageOverTime, UsagePoint

PAST_LIMIT = 4_096


class LeasedJob(msgspec.Struct, kw_only=True, eq=False):
    """One attempt of a job on this pilot, from the acceptance of its offer to its end. Its fields are changed as it proceeds."""

    attempt_id: AttemptId
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

    @property
    def disk_mb(self) -> int:
        """The disk space that the job requested, in MiB. 0 if it requested none."""
        return self.description.disk_mb or 0

    @property
    def memory_mb(self) -> int:
        """The memory that the job requested, in MiB. 0 if it requested none."""
        return self.description.memory_mb or 0


class LeasedJobs:
    """All jobs that a pilot has accepted and not finished. `slots` and `memory_mb` (MiB) are what the pilot has for all of them."""

    def __init__(self, slots: int, memory_mb: int) -> None:
        self._slots = slots
        self._memory_mb = memory_mb
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
            description=offered.description,
            fault=offered.fault,
            processors=offered.slots(self._slots),
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
    def free_memory_mb(self) -> int:
        """The pilot's memory less what running jobs requested, in MiB; at least 0."""
        return max(0, self._memory_mb - sum(each.memory_mb for each in self.running))

    # --- the queue of jobs that may start ---

    def make_ready(self, holding: LeasedJob, now: float) -> None:
        """Append a job with a granted lease to the queue of jobs that may start. `now` is in seconds since boot."""
        holding.ready_at = now
        self._line.append(holding)

    def next_to_start(self) -> LeasedJob | None:
        """Remove and return the first job of the queue, if the free slots and memory suffice for it. Else return None.

        No later job is started before it, since a job of many slots would otherwise wait for ever. A job with a range of
        processors also gets unused slots, up to the end of its range. If nothing runs, the first job is returned whatever it
        needs.
        """
        if not self._line or not self._fits(self._line[0]):
            return None
        holding = self._line.pop(0)
        holding.processors += self._more_for(holding)
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
        return processors(running) + holding.processors <= self._slots and memory <= self._memory_mb

    def stale(self, ahead: int, since: float) -> list[LeasedJob]:
        """Return the queued jobs to give back to other pilots, because they were fetched ahead and have waited too long.

        These are jobs behind the first `ahead` processors of the queue that were queued at `since` (seconds since boot) or
        earlier.
        """
        place, found = 0, []
        for each in self._line:
            place += each.processors
            if place > ahead and each.ready_at <= since:
                found.append(each)
        return found

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
