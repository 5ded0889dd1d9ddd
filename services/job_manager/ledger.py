"""Jobs as they change within one transaction: locked once, moved in memory as often as the batch says, written once."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from wms.db import attempt, job, limit
from wms.db.attempt import Ended
from wms.db.database import Transaction
from wms.db.job import Move
from wms.ids import Epoch, JobId, PilotId
from wms.job.job import Job, Steps
from wms.job.state import Event, State
from wms.lease import holds

Held = tuple[JobId, Epoch]


class Ledger:
    """The jobs of one batch, and what is to be written of them."""

    def __init__(self, jobs: dict[JobId, Job], now: datetime, lease_seconds: float) -> None:
        self._locked = jobs
        self._jobs = dict(jobs)
        self._steps: dict[JobId, Steps] = {}
        self._accepted: set[JobId] = set()
        self._renewed: set[JobId] = set()
        self._started: dict[JobId, int] = {}
        """The numbers of the starts in the jobs' histories."""
        self._ended: dict[JobId, Ended] = {}
        self._now = now
        self._lease_seconds = lease_seconds

    @classmethod
    async def open(cls, tx: Transaction, job_ids: Iterable[JobId], lease_seconds: float) -> "Ledger":
        """Lock the jobs; those that do not exist are simply not there."""
        return cls(await job.lock(tx, job_ids), await tx.now(), lease_seconds)

    def job(self, job_id: JobId) -> Job | None:
        """Return the job as it is by now."""
        return self._jobs.get(job_id)

    def held(self, held: Held, pilot_id: PilotId) -> Job | None:
        """Return the job if the pilot holds it under this epoch, else None: its lease is lost."""
        found = self._jobs.get(held[0])
        if found is None or not holds(found.lease, pilot_id, held[1], self._now):
            return None
        return found

    def accept(self, found: Job) -> None:
        """The offer becomes the pilot's lease, and the attempt counts; a second acceptance only renews it."""
        lease = found.lease
        assert lease is not None
        if lease.phase == "offered":
            self._accepted.add(found.job_id)
            found = msgspec.structs.replace(
                found, attempts=found.attempts + 1, lease=msgspec.structs.replace(lease, phase="accepted")
            )
            self._jobs[found.job_id] = found
        self._renewed.add(found.job_id)

    def renew(self, found: Job) -> None:
        """The lease goes on."""
        self._renewed.add(found.job_id)

    def end(self, found: Job, ended: Ended, steps: Steps) -> None:
        """The attempt and its lease are over."""
        self._ended[found.job_id] = ended
        self._renewed.discard(found.job_id)
        accepted = found.lease is not None and found.lease.phase == "accepted"
        if ended.outcome == "withdrawn" and accepted:
            # Given back before it began: as if it had never been taken.
            found = msgspec.structs.replace(found, attempts=found.attempts - 1)
        self.move(msgspec.structs.replace(found, lease=None), steps)
        if found.stop_requested == "reschedule" and steps and steps[-1].state is State.WAITING:
            self.again_from_scratch(found)

    def move(self, found: Job, steps: Steps) -> None:
        """The job takes these steps."""
        if steps:
            before = self._steps.get(found.job_id, ())
            number = self._locked[found.job_id].event_seq + len(before) + 1
            self._started.update(
                (found.job_id, number + n) for n, step in enumerate(steps) if step.event is Event.START
            )
            self._steps[found.job_id] = (*before, *steps)
            found = msgspec.structs.replace(found, state=steps[-1].state)
        self._jobs[found.job_id] = found

    def again_from_scratch(self, found: Job) -> None:
        """Its user wants it tried again: the attempts so far count no more."""
        self._jobs[found.job_id] = msgspec.structs.replace(self._jobs[found.job_id], attempts=0)

    async def write(self, tx: Transaction, source: str) -> None:
        """Write everything, in few statements."""
        await attempt.accept(tx, self._renewed, self._lease_seconds)
        starts = {job_id: seq for job_id, seq in self._started.items() if job_id not in self._ended}
        await attempt.note_started(tx, starts)
        await attempt.finish(tx, [self._completed(each) for each in self._ended.values()])
        await limit.give_back(tx, self._counters_of_ended())
        await job.count_attempts(tx, self._accepted - self._steps.keys())
        moves = [
            Move(job=self._locked[job_id], steps=steps, attempts=self._jobs[job_id].attempts)
            for job_id, steps in self._steps.items()
        ]
        await job.move(tx, moves, source)

    def _completed(self, ended: Ended) -> Ended:
        """Add what else of the attempt happened in this transaction."""
        return msgspec.structs.replace(
            ended, accepted=ended.job_id in self._accepted, start_seq=self._started.get(ended.job_id)
        )

    def _counters_of_ended(self) -> Iterable[int]:
        leases = (self._locked[job_id].lease for job_id in self._ended)
        return (counter_id for lease in leases if lease is not None for counter_id in lease.counted)

    def ended(self) -> Iterable[tuple[Job, Ended]]:
        """Return the jobs whose attempts end here."""
        return ((self._locked[job_id], each) for job_id, each in self._ended.items())

    @property
    def lease_seconds(self) -> float:
        """For how long what is accepted or renewed here is held."""
        return self._lease_seconds
