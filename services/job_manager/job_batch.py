"""The jobs that one transaction changes: locked together, changed in memory, and stored together."""

from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from wms.db import attempt, job, limit
from wms.db.attempt import AttemptEnd
from wms.db.database import Transaction
from wms.db.job import JobMove
from wms.ids import AttemptId, JobId, PilotId, TaskQueueId
from wms.job.job import Job, Step, Steps, is_handout
from wms.job.reasons import Reason
from wms.job.state import Event, State
from wms.lease import holds

PAYLOADS = "job_agent"
"""The source that job histories name for events of payloads, which job agents report."""
_END = {"done": Event.FINISH, "failed": Event.FAIL, "killed": Event.KILL}
"""The event that usually follows the end of a job's payload, by the outcome of the attempt."""


class JobBatch:
    """Some locked jobs and the changes to them. All methods but `write` change them in memory only."""

    def __init__(self, jobs: dict[JobId, Job], now: datetime, lease_seconds: float) -> None:
        self._locked = jobs
        self._jobs = dict(jobs)
        self._steps: dict[JobId, Steps] = {}
        self._accepted: set[JobId] = set()
        self._renewed: set[JobId] = set()
        self._started: dict[JobId, int] = {}
        """For each job, the number in its history of the step by which its payload started."""
        self._ended: dict[JobId, AttemptEnd] = {}
        self._now = now
        self._lease_seconds = lease_seconds

    @classmethod
    async def open(cls, tx: Transaction, job_ids: Iterable[JobId], lease_seconds: float) -> "JobBatch":
        """Lock these jobs in the database and return them as a batch. Ids that do not exist are left out.

        `lease_seconds` is the length of leases that the batch accepts or renews.
        """
        return cls(await job.lock(tx, job_ids), await tx.now(), lease_seconds)

    @classmethod
    async def open_held(
        cls, tx: Transaction, job_ids: Iterable[JobId], pilot_ids: Collection[PilotId], lease_seconds: float
    ) -> "JobBatch":
        """Do as `open` with those jobs alone that these pilots hold. So no pilot locks what it names of others."""
        return cls(await job.lock_held(tx, job_ids, pilot_ids), await tx.now(), lease_seconds)

    def job(self, job_id: JobId) -> Job | None:
        """Return one job of the batch with its changes so far, or None if the batch does not have it."""
        return self._jobs.get(job_id)

    def held(self, attempt_id: AttemptId, pilot_id: PilotId) -> Job | None:
        """Return the job if this pilot now holds an offer or a lease for this attempt; otherwise None."""
        found = self._jobs.get(attempt_id.job_id)
        if found is None or not holds(found.lease, pilot_id, attempt_id.epoch, self._now):
            return None
        return found

    def held_seconds(self, found: Job) -> float:
        """Return how long ago the job was offered to its pilot, in seconds by the database's clock."""
        assert found.lease is not None
        assert found.lease.granted_at is not None, "as it was locked"
        return (self._now - found.lease.granted_at).total_seconds()

    def accept(self, found: Job) -> None:
        """Turn the job's offer into a lease, because the pilot accepts it. If it is a lease already, renew it."""
        lease = found.lease
        assert lease is not None
        if lease.phase == "offered":
            self._accepted.add(found.job_id)
            accepted = msgspec.structs.replace(lease, phase="accepted")
            self._jobs[found.job_id] = msgspec.structs.replace(found, lease=accepted)
        self._renewed.add(found.job_id)

    def renew(self, found: Job) -> None:
        """Renew the job's lease: it then ends `lease_seconds` from now by the database's clock."""
        self._renewed.add(found.job_id)

    def end(self, found: Job, ended: AttemptEnd, steps: Steps) -> None:
        """End the job's attempt and its lease, and move the job by `steps`. `ended` is the result to store.

        An attempt whose payload did not begin does not count among the job's attempts.
        """
        self._ended[found.job_id] = ended
        self._renewed.discard(found.job_id)
        began = found.has_begun or ended.ran or any(step.event is Event.START for step in steps)
        # An attempt that did not begin does not count, apart from a bound of its own.
        unstarted = 0 if began else found.unstarted + is_handout(found, ended.reason)
        self._jobs[found.job_id] = msgspec.structs.replace(
            found,
            state=self._step(found, steps),
            attempts=found.attempts - (not began),
            unstarted=unstarted,
            lease=None,
        )
        stopped_by_user = found.stop_requested in ("reschedule", "hold")
        if stopped_by_user and steps and steps[-1].state in (State.WAITING, State.HELD):
            self.reset_attempts(found)

    def move(self, found: Job, steps: Steps) -> None:
        """Move the job by these steps. Without steps nothing happens."""
        if steps:
            self._jobs[found.job_id] = msgspec.structs.replace(found, state=self._step(found, steps))

    def _step(self, found: Job, steps: Steps) -> State:
        """Add the steps to the job's changes, and return the state that they lead to."""
        if not steps:
            return found.state
        before = self._steps.get(found.job_id, ())
        number = self._locked[found.job_id].event_seq + len(before) + 1
        for seq, step in enumerate(steps, start=number):
            if step.event is Event.START:
                self._started[found.job_id] = seq
        self._steps[found.job_id] = before + steps
        return steps[-1].state

    def reset_attempts(self, found: Job) -> None:
        """Set the job's number of attempts to 0, because its user starts it over."""
        self._jobs[found.job_id] = msgspec.structs.replace(self._jobs[found.job_id], attempts=0, unstarted=0)

    def reset_losses(self, found: Job) -> None:
        """Set the job's number of attempts lost before the payload began to 0, because its user releases the job."""
        self._jobs[found.job_id] = msgspec.structs.replace(self._jobs[found.job_id], unstarted=0)

    def requeue(self, job_id: JobId, tq_id: TaskQueueId, user_priority: float) -> None:
        """Put the job into another task queue with this priority, because its user changed its description."""
        for jobs in (self._locked, self._jobs):
            jobs[job_id] = msgspec.structs.replace(jobs[job_id], tq_id=tq_id, user_priority=user_priority)

    async def write(self, tx: Transaction, source: str) -> None:
        """Store all changes of the batch in this transaction. `source` is the user or service that histories name as their cause."""
        await attempt.accept(tx, self._renewed, self._lease_seconds)
        starts = {job_id: seq for job_id, seq in self._started.items() if job_id not in self._ended}
        await attempt.note_started(tx, starts)
        told = self._told_ends() if source == PAYLOADS else {}
        await attempt.finish(
            tx, [self._completed(each, told.get(each.job_id)) for each in self._ended.values()]
        )
        await limit.give_back(tx, self._counters_of_ended())
        moves = [
            JobMove(
                job=self._locked[job_id],
                steps=steps,
                attempts=self._jobs[job_id].attempts,
                unstarted=self._jobs[job_id].unstarted,
                end_told=job_id in told,
            )
            for job_id, steps in self._steps.items()
        ]
        await job.move(tx, moves, source)

    def _told_ends(self) -> dict[JobId, int]:
        """Return, by job, the number of the last step in the history. Only jobs are returned whose last step the row of the ended attempt implies.

        Such a step need not be stored by itself.
        """
        return {
            job_id: self._locked[job_id].event_seq + len(steps)
            for job_id, ended in self._ended.items()
            if (steps := self._steps.get(job_id)) and _is_told_by(ended, steps[-1])
        }

    def _completed(self, ended: AttemptEnd, end_seq: int | None) -> AttemptEnd:
        """Return the attempt's end, completed with what else happened to the attempt in this transaction: acceptance and start.

        `end_seq` is the number of the job's last step in its history, if the attempt's row implies that step.
        """
        return msgspec.structs.replace(
            ended,
            accepted=ended.job_id in self._accepted,
            start_seq=self._started.get(ended.job_id),
            end_seq=end_seq,
        )

    def _counters_of_ended(self) -> Iterable[int]:
        leases = (self._locked[job_id].lease for job_id in self._ended)
        return (counter_id for lease in leases if lease is not None for counter_id in lease.counted)

    def ended(self) -> Iterable[tuple[Job, AttemptEnd]]:
        """Return the jobs whose attempts end in this batch, as they were when locked, with the results."""
        return ((self._locked[job_id], each) for job_id, each in self._ended.items())

    @property
    def lease_seconds(self) -> float:
        """For how many seconds a lease holds that is accepted or renewed in this batch."""
        return self._lease_seconds


def _is_told_by(ended: AttemptEnd, last: Step) -> bool:
    return (
        not last.source
        and last.before is State.RUNNING
        and last.event is _END.get(ended.outcome)
        and last.reason == Reason(ended.reason, ended.text)
    )
