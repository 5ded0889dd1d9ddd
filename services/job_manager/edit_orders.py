"""Edits jobs: each job gets its own changed description, and moves to the task queue for its new requirements."""

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from services.job_manager import dependants, dependencies
from services.job_manager.job_batch import JobBatch
from wms.auth.principal import Principal
from wms.db import description, task_queue
from wms.db.database import Transaction
from wms.db.description import Requeued, StoredDescription
from wms.ids import Identity, JobId, TaskQueueId
from wms.job.job import Job, Steps
from wms.job.state import State
from wms.jobdesc.changes import Changes, changed, in_words, read_changes
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.jobdesc.predecessors import FIELDS, Predecessors, predecessors_of
from wms.jobdesc.problem import InvalidDescription
from wms.matching.binding import bound_like
from wms.matching.grouping import Requirements
from wms.matching.requirements import Credentials, key_of, requirements_of
from wms.messages.commands import Control

Moving = list[tuple[Job, Steps]]
"""Locked jobs, each with the steps that are decided for it."""

_decoder = msgspec.json.Decoder(JobDescription)
_encoder = msgspec.json.Encoder()


class _Outcome(msgspec.Struct, frozen=True):
    """The result of the changes for one description in one task queue."""

    required: Requirements | None = None
    body: str = ""
    priority: float = 0.0
    max_attempts: int = 0
    refused: str = ""
    predecessors: Predecessors = Predecessors(())


class EditOrder:
    """The changes that one `wms edit` or `wms reschedule` order makes to the descriptions of jobs."""

    def __init__(
        self, principal: Principal, changes: Changes, segments: tuple[int, ...], *, anew: bool
    ) -> None:
        """Take the changes: new values by field. `segments` are the CPU segments of task queues, as upper bounds in seconds.

        With `anew` the jobs start over, and their earlier attempts no longer count.
        """
        self._anew = anew
        self._principal = principal
        self._changes = changes
        self._segments = segments
        self._outcomes: dict[tuple[str, TaskQueueId], _Outcome] = {}
        self._moves_after = not self._changes.keys().isdisjoint(FIELDS)

    @classmethod
    def of(cls, principal: Principal, control: Control, segments: tuple[int, ...]) -> Self | None:
        """Return the changes that an order makes, or None if it makes none. Raise InvalidDescription for invalid values."""
        if not control.changes and control.action != "edit":
            return None
        return cls(principal, read_changes(control.changes), segments, anew=control.action == "reschedule")

    @property
    def archives(self) -> tuple[SandboxRef, ...]:
        """The archives of input files that are new."""
        added: tuple[SandboxRef, ...] = self._changes.get("input_sandbox", ())
        return added

    @property
    def words(self) -> str:
        """The changed fields and values as text, for the histories of the jobs."""
        return in_words(self._changes)

    async def apply(
        self, tx: Transaction, job_batch: JobBatch, moving: Moving
    ) -> tuple[Moving, dict[JobId, str]]:
        """Store the new descriptions of locked jobs in this transaction, and record their new task queues in `job_batch`.

        `moving` are the jobs with their decided steps. Return those jobs, with steps, that can be changed, and for the others the reason why they are
        left unchanged, by job id.
        """
        if self._moves_after:
            await dependencies.check(tx, self._principal, [self._new_predecessors()])
        jobs = {found.job_id: found for found, _ in moving}
        stored = await description.of_jobs(tx, list(jobs))
        required = await task_queue.read(tx, (each.tq_id for each in jobs.values()))
        outcomes = {each.job_id: self._outcome(jobs[each.job_id], each, required) for each in stored}
        refused = {
            job_id: f"job {job_id}: {each.refused}" for job_id, each in outcomes.items() if each.refused
        }
        wanted = {key_of(each.required): each.required for each in outcomes.values() if each.required}
        queues = await task_queue.find_or_make(tx, wanted) if wanted else {}
        requeued = [
            _requeued(each, outcomes[each.job_id], queues) for each in stored if each.job_id not in refused
        ]
        if requeued:
            await description.replace(tx, requeued)
        for each in requeued:
            job_batch.requeue(each.stored.job_id, each.tq_id, each.user_priority)
        left = await _still_held(tx, [each for each in moving if each[0].job_id not in refused])
        if self._moves_after:
            waiting = {each.stored.job_id: outcomes[each.stored.job_id].predecessors for each in requeued}
            left = await dependants.change(tx, waiting, left)
        return left, refused

    def _new_predecessors(self) -> Predecessors:
        """Return the predecessors that the changes name."""
        named = {name: self._changes.get(name, ()) for name in FIELDS}
        return predecessors_of(JobDescription(executable="-", **named)) or Predecessors(())

    def _outcome(
        self, found: Job, stored: StoredDescription, required: Mapping[TaskQueueId, Requirements]
    ) -> _Outcome:
        mine = Identity(found.owner, found.owner_group, found.vo)
        principal = self._principal
        if self.archives and mine != principal.identity:
            return _Outcome(refused="only its owner may send it other files")
        if self._moves_after and found.state is not State.HELD:
            return _Outcome(refused="what it starts after changes only while it is held: hold it first")
        if any(high >= found.job_id for _, high in self._new_predecessors().all):
            return _Outcome(refused="it can only start after jobs that were submitted before it")
        most = self._changes.get("max_attempts", found.attempts + 1)
        if not self._anew and most <= found.attempts:
            return _Outcome(refused=f"max_attempts {most}: it has had {found.attempts} already")
        key = (stored.body, found.tq_id)
        if key not in self._outcomes:
            self._outcomes[key] = self._judged(stored.body, required[found.tq_id])
        return self._outcomes[key]

    def _judged(self, body: str, before: Requirements) -> _Outcome:
        try:
            after = changed(_decoder.decode(body), self._changes)
        except InvalidDescription as invalid:
            first = invalid.problems[0]
            return _Outcome(refused=f"{first.place} {first.message}")
        # Owner and credentials stay those of the submission.
        required = requirements_of(
            after,
            before.owner,
            before.owner_group,
            before.vo,
            self._segments,
            credentials=Credentials(before.certificate_subject, before.fqans),
        )
        required = bound_like(required, before)
        body, predecessors = _encoder.encode(after).decode(), predecessors_of(after) or Predecessors(())
        priority = float(after.priority)
        return _Outcome(required, body, priority, after.attempts_limit, predecessors=predecessors)


def _requeued(stored: StoredDescription, outcome: _Outcome, queues: Mapping[bytes, TaskQueueId]) -> Requeued:
    assert outcome.required is not None
    tq_id = queues[key_of(outcome.required)]
    return Requeued(stored, outcome.body, tq_id, outcome.priority, outcome.max_attempts)


async def _still_held(tx: Transaction, moving: Moving) -> Moving:
    """Return the moves with added steps: jobs that were held are held again, with the same reason and by the same user or service."""
    held: Sequence[Job] = [found for found, steps in moving if steps[-1].state is State.HELD]
    if not held:
        return moving
    reasons = await description.last_reasons(tx, held)
    return [(found, _held_as(steps, reasons.get(found.job_id))) for found, steps in moving]


def _held_as(steps: Steps, last: tuple[object, str] | None) -> Steps:
    if last is None:
        return steps
    reason, source = last
    return (*steps[:-1], msgspec.structs.replace(steps[-1], reason=reason, source=source))
