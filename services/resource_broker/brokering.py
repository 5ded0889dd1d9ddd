"""The resource broker's main loop: takes jobs whose next step is due, decides on each, and carries the decisions out.

Jobs are read in one transaction, decided on outside of any, and the decisions are written in another. A decision counts only if
this broker still has the job claimed. If the process dies in a step, another broker takes the step anew after its deadline.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog

from services.resource_broker import brokered_jobs, job_ranking
from services.resource_broker.brokered_jobs import BrokeredJob
from services.resource_broker.coallocation import GroupStepInputs, group_step
from services.resource_broker.config import BrokeringSettings
from services.resource_broker.grid_snapshot import GridSnapshot, SnapshotReader
from services.resource_broker.index_searches import AwaitedSearch, KnownElements
from services.resource_broker.input_data import replicas_of, sites_of
from services.resource_broker.next_step import NextStep, StepTerms, ended, next_step, place_of
from services.resource_broker.requested_indexes import IndexAnswer, RequestedIndexes
from services.resource_broker.step_execution import Decided, carry_out
from wms import faultpoint
from wms.broker.candidate import Candidate
from wms.db import job_record
from wms.db.database import GONE, RETRIED, Database
from wms.db.job_record import ClaimedRecord
from wms.ids import InstanceId, JobId
from wms.job.reasons import Code
from wms.transfer.replica_resolver import resolver

log = structlog.get_logger()

TRIES_LIMIT = 5
"""How many times in a row a job's step may begin without coming to an end. After that the job is held."""
FEW_RANKED = 200
"""The most pairs of job and candidate that a round ranks in the event loop. A round with more pairs ranks them in a thread."""


class Brokering:
    """The main loop's work: takes jobs' next steps. Any number of instances may run, as one of them at a time claims a job."""

    def __init__(
        self, db: Database, settings: BrokeringSettings, indexes: RequestedIndexes, owner: InstanceId
    ) -> None:
        self._db = db
        self._settings = settings
        self._terms = StepTerms(
            sites_asked=settings.sites_asked,
            decision_seconds=settings.decision_seconds,
            look_again_seconds=settings.look_again_seconds,
            most_attempts=settings.most_attempts,
        )
        self._indexes = indexes
        self._owner = owner
        self._snapshot = SnapshotReader()
        self._catalogue = resolver(settings.catalogue)
        self.placed = 0
        """How many jobs this instance has placed since it started."""

    async def step(self) -> bool:
        """Claim jobs whose next step is due, and take that step for each; return whether there may be more.

        A job whose last step came to no end is handled alone, so that a fault in it does not stop others.
        """
        records = await self._claim()
        if not records:
            return False
        faultpoint.reach("broker.after_claim")
        # Whatever killed a job's step may kill it again: no other job is to suffer.
        alone = [each for each in records if each.tries > 1]
        together = [each for each in records if each.tries == 1]
        for each in (*await self._attempt(together), *alone):
            await self._attempt([each])
        return len(records) == self._settings.at_once

    async def _claim(self) -> list[ClaimedRecord]:
        found, self._indexes.found = self._indexes.found, set()
        async with self._db.transaction() as tx:
            await job_record.hasten(tx, found)
            settings = self._settings
            return await job_record.claim(tx, self._owner, settings.claim_seconds, settings.at_once)

    async def _attempt(self, records: Sequence[ClaimedRecord]) -> Sequence[ClaimedRecord]:
        """Take the next step of these jobs together. Return the jobs if that failed, as one of them may be the cause; else nothing."""
        try:
            if records:
                await self._take(records)
        except (*GONE, *RETRIED):
            raise
        except Exception:
            log.exception("jobs could not be brokered", jobs=[(each.job_id, each.tries) for each in records])
            return records
        return ()

    async def _take(self, records: Sequence[ClaimedRecord]) -> None:
        async with self._db.transaction() as tx:
            jobs = await brokered_jobs.load(tx, records)
            snapshot = await self._snapshot.read(tx, {each.job_class for each in jobs})
        snapshot = await self._with_input_data(snapshot, jobs)
        faultpoint.reach("broker.after_read")
        # Here, and not where it is decided: a search begins in the event loop, and a thread has none.
        answers = {each.record.job_id: self._answer(each) for each in jobs}
        if len(jobs) * len(snapshot.candidates) > FEW_RANKED:
            decided = await asyncio.to_thread(self._decide, jobs, answers, snapshot)
        else:
            decided = self._decide(jobs, answers, snapshot)
        async with self._db.transaction() as tx:
            placed = set(await carry_out(tx, decided, self._owner, self._settings.temporary_seconds))
        faultpoint.reach("broker.after_step")
        self.placed += len(placed)

    async def _with_input_data(self, snapshot: GridSnapshot, jobs: Sequence[BrokeredJob]) -> GridSnapshot:
        replicas = await replicas_of(jobs, self._catalogue)
        if not replicas:
            return snapshot
        sites = sites_of(replicas, snapshot.candidates)
        known = msgspec.structs.replace(snapshot.knowledge, replicas=replicas, replica_sites=sites)
        return msgspec.structs.replace(snapshot, knowledge=known)

    def _answer(self, job: BrokeredJob) -> IndexAnswer | None:
        """Return what the index servers that a job's user named lead to; None if the job names none.

        If nothing fresh is known, a search begins as soon as the job's user may have another.
        """
        servers = job.description.index_servers
        record = job.record
        return self._indexes.answer(servers, record.identity, record.job_id) if servers else None

    def _decide(
        self, jobs: Iterable[BrokeredJob], answers: Mapping[JobId, IndexAnswer | None], snapshot: GridSnapshot
    ) -> list[Decided]:
        """Decide on each job, in order, and return the steps. For the later jobs, an element counts with the jobs placed before.

        `answers` are what each job's index servers lead to, and `snapshot` is the stored state of all elements.
        """
        decided = []
        for each in jobs:
            step = self._decided(each, answers[each.record.job_id], snapshot)
            decided.append((each, step))
            for one in step.placed:
                snapshot = snapshot.with_job_at(place_of(one.element))
        return decided

    def _decided(self, job: BrokeredJob, answer: IndexAnswer | None, snapshot: GridSnapshot) -> NextStep:
        if job.record.tries > TRIES_LIMIT:
            text = f"its step failed {job.record.tries - 1} times"
            return ended(job.facts, "hold", Code.BROKER_FAULT, text)
        if answer and answer.refusal:
            return ended(job.facts, "hold", Code.INDEX_REFUSED, answer.refusal)
        if answer and answer.awaited:
            return self._searching(job, answer.awaited)
        return self._next(job, answer and answer.known, snapshot)

    def _next(self, job: BrokeredJob, known: KnownElements | None, snapshot: GridSnapshot) -> NextStep:
        """Return the next step of a job. `known` are the elements that its index servers lead to; None if it names no servers.

        `snapshot` is the stored state of all elements.
        """

        def rejection(each: Candidate) -> str:
            return known.rejection(each.place) if known else ""

        assess = job_ranking.assessor(job, snapshot, rejection)
        if job.facts.group is not None:
            inputs = GroupStepInputs(
                assess=assess, reservable=snapshot.reservable, now=snapshot.now, terms=self._terms
            )
            return group_step(job.facts, job.facts.group, inputs)
        return next_step(job.facts, assess, snapshot.reservable, snapshot.now, self._terms)

    def _searching(self, job: BrokeredJob, awaited: AwaitedSearch) -> NextStep:
        """Return the step of a job that waits for a search, or for its turn to search. Nothing that it has asked for is given up."""
        facts = job.facts
        return NextStep(
            phase=facts.phase,
            seconds=self._indexes.seconds,
            round=facts.round,
            asked=facts.asked,
            reason=awaited.reason,
            text=awaited.text,
        )
