"""The jobs that a pilot has accepted, was granted or runs, and what they take of its node."""

from collections.abc import Iterable, Iterator

import msgspec

from services.job_agent.offered import DecodedOffer
from services.job_agent.payload.run import Payload
from wms.bounded_cache import BoundedCache
from wms.ids import AttemptId
from wms.jobdesc.description import JobDescription

PAST_LIMIT = 4_096


class LeasedJob(msgspec.Struct, kw_only=True, eq=False):
    """One job under one lease, from its acceptance on."""

    attempt_id: AttemptId
    description: JobDescription
    fault: str = ""
    """Why the description cannot be understood here."""
    expires_at: float | None = None
    """By the shepherd's clock; None until it is granted."""
    ready_at: float = 0.0
    kill_ordered: bool = False
    lost: bool = False
    payload: Payload | None = None
    began_at: float = 0.0
    processors: int = 1
    """How many of the pilot's slots it takes."""

    @property
    def disk_mb(self) -> int:
        """What it asked for; 0 when it did not."""
        return self.description.disk_mb or 0

    @property
    def memory_mb(self) -> int:
        """What it asked for; 0 when it did not."""
        return self.description.memory_mb or 0


class LeasedJobs:
    """All that a pilot of so many slots and so much memory holds."""

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
        """Return the holding, if it is still one."""
        return self._all.get(attempt_id)

    def knows(self, attempt_id: AttemptId) -> bool:
        """Tell whether it is leased, or was: an offer that comes twice."""
        return attempt_id in self._all or attempt_id in self._past

    def take(self, offered: DecodedOffer) -> LeasedJob:
        """Hold an offered job."""
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
        """Hold it no more."""
        self._all.pop(holding.attempt_id, None)
        if holding in self._line:
            self._line.remove(holding)

    # --- what is taken ---

    @property
    def running(self) -> list[LeasedJob]:
        """Those whose payload was begun."""
        return [each for each in self._all.values() if each.payload is not None]

    @property
    def granted(self) -> list[LeasedJob]:
        """Those under a lease, running or not."""
        return [each for each in self._all.values() if each.expires_at is not None]

    @property
    def processors(self) -> int:
        """What all together take, or will."""
        return processors(self._all.values())

    @property
    def busy(self) -> int:
        """Slots whose payloads run."""
        return processors(self.running)

    @property
    def memory_mb(self) -> int:
        """What all together asked for."""
        return sum(each.memory_mb for each in self._all.values())

    @property
    def disk_mb(self) -> int:
        """What all together asked for."""
        return sum(each.disk_mb for each in self._all.values())

    @property
    def free_memory_mb(self) -> int:
        """What those that run leave to others."""
        return max(0, self._memory_mb - sum(each.memory_mb for each in self.running))

    # --- the line of those that may start ---

    def make_ready(self, holding: LeasedJob, now: float) -> None:
        """Put a granted job into the line."""
        holding.ready_at = now
        self._line.append(holding)

    def next_to_start(self) -> LeasedJob | None:
        """Take the first of the line out of it, if there is room for it now.

        Nobody is passed by, or a wide job would wait for ever.
        """
        if not self._line or not self._fits(self._line[0]):
            return None
        holding = self._line.pop(0)
        holding.processors += self._more_for(holding)
        return holding

    def _more_for(self, holding: LeasedJob) -> int:
        """Return how many slots more, which nobody else holds, a job that begins can use."""
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
        """Return who stands in the line behind its first `ahead` processors, and has since that time or before."""
        place, found = 0, []
        for each in self._line:
            place += each.processors
            if place > ahead and each.ready_at <= since:
                found.append(each)
        return found

    @property
    def line(self) -> list[LeasedJob]:
        """Who stands in the line."""
        return list(self._line)


def processors(holdings: Iterable[LeasedJob]) -> int:
    """Return what these take together."""
    return sum(each.processors for each in holdings)
