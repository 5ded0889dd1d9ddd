"""Reads the jobs that the resource broker works on: their records, descriptions, requirements, failed placements and agreements.

A record is what the broker stores of a job: the phase that it is in, its last ranking of elements, and the agreements asked
for.
"""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from services.resource_broker.failed_placements import failed_placements
from services.resource_broker.job_group import GroupMember, JobGroup
from services.resource_broker.next_step import HeldAgreement, StepFacts
from wms.broker.start_window import start_window
from wms.db import agreement, candidate, job, task_queue
from wms.db.candidate import FailedAtPlace
from wms.db.database import Transaction
from wms.db.job_record import ClaimedRecord
from wms.ids import CeId, JobId
from wms.job.job import Job
from wms.jobdesc.array import jobs_in
from wms.jobdesc.description import JobDescription
from wms.matching.binding import free
from wms.matching.grouping import Requirements

_decoder = msgspec.json.Decoder(JobDescription)


class BrokeredJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job whose record this broker instance has claimed, with all that the job's next step depends on."""

    record: ClaimedRecord
    description: JobDescription
    requirements: Requirements
    """What the job asks of a computing element. The tag that ties the job to a pilot of its own is left out."""
    facts: StepFacts

    @property
    def job_class(self) -> str:
        """A hash that is equal for jobs whose run times should be alike.

        Such jobs have the same owner, group, VO, executable, job group, job type and number of processors.
        """
        said = self.description
        named = (*self.record.identity, said.executable, said.job_group, said.job_type, str(said.processors))
        return hashlib.blake2b("\0".join(named).encode(), digest_size=16).hexdigest()

    def companion(self, job_id: JobId) -> "BrokeredJob":
        """Return a copy of this job under the id `job_id`: another job of the group that starts together with it (co-allocation)."""
        return msgspec.structs.replace(self, record=msgspec.structs.replace(self.record, job_id=job_id))

    def site_of(self, agreement_id: str) -> str:
        """Return the name of the site that was asked for an agreement on this job's behalf; empty if none was."""
        held = self.facts.agreements.get(agreement_id)
        ranked = (each.site for each in self.record.ranking if each.agreement_id == agreement_id)
        return held.place.site if held else next(ranked, "")


async def load(tx: Transaction, records: Sequence[ClaimedRecord]) -> list[BrokeredJob]:
    """Return the jobs of claimed records, with all that their next steps depend on, in the order of the records."""
    required = await task_queue.read(tx, [each.tq_id for each in records])
    held = await _agreements(tx, [name for each in records for name in each.asked])
    said = {each.job_id: _decoder.decode(each.body) for each in records}
    together = {each.job_id: _together(each, said[each.job_id]) for each in records}
    groups = await _groups(tx, [each for each in together.values() if len(each) > 1])
    failed = await candidate.failures(tx, {JobId(one) for ids in together.values() for one in ids})
    found = [
        _job(
            each,
            said[each.job_id],
            required[each.tq_id],
            held,
            [one for one in failed if one.job_id in together[each.job_id]],
        )
        for each in records
    ]
    return [_grouped(each, groups.get(together[each.record.job_id])) for each in found]


def _grouped(each: BrokeredJob, group: JobGroup | None) -> BrokeredJob:
    facts = msgspec.structs.replace(each.facts, group=group)
    return msgspec.structs.replace(each, facts=facts) if group else each


def _together(record: ClaimedRecord, said: JobDescription) -> range:
    """Return the ids of the jobs that must start together with a job: all jobs of its array if co-allocated, else its own id alone.

    `said` is the job's description.
    """
    if not said.coallocate or record.array_index is None:
        return range(record.job_id, record.job_id + 1)
    leader = record.job_id - record.array_index
    return range(leader, leader + jobs_in(said))


async def _groups(tx: Transaction, ranges: Sequence[range]) -> dict[range, JobGroup]:
    """Return the groups of co-allocated jobs by the ranges of their ids."""
    if not ranges:
        return {}
    found = await job.read(tx, {JobId(job_id) for ids in ranges for job_id in ids})
    return {ids: JobGroup(_members(ids, found), len(ids), JobId(ids[0])) for ids in set(ranges)}


def _members(ids: range, found: dict[JobId, Job]) -> tuple[GroupMember, ...]:
    known = (found[JobId(job_id)] for job_id in ids if job_id in found)
    return tuple(GroupMember(each.job_id, each.state, each.event_seq) for each in known)


async def _agreements(tx: Transaction, ids: Sequence[str]) -> dict[str, HeldAgreement]:
    """Return the stored agreements with these ids, by id. Those whose offer no site has stored yet are left out."""
    if not ids:
        return {}
    return {
        str(name): HeldAgreement(
            agreement_id=str(name),
            place=CeId(each.site, each.ce),
            state=str(each.state),
            start_at=each.start_at,
            reservation=each.reservation,
            reason=each.text or each.code,
        )
        for name, each in (await agreement.read(tx, ids)).items()
    }


def _job(
    record: ClaimedRecord,
    description: JobDescription,
    requirements: Requirements,
    held: dict[str, HeldAgreement],
    failed: Iterable[FailedAtPlace],
) -> BrokeredJob:
    wishes = description.preferences
    facts = StepFacts(
        job_id=record.job_id,
        seq=record.seq,
        phase=record.phase,
        round=record.round,
        is_checking=record.is_checking,
        window=start_window(wishes, record.submitted_at),
        wants_reservation=wishes is not None and wishes.reservation,
        asked=record.asked,
        agreements={name: held[name] for name in record.asked if name in held},
        failed=failed_placements(each for each in failed if each.created_at >= record.since),
        ranking=record.ranking,
    )
    return BrokeredJob(
        record=record,
        description=description,
        requirements=msgspec.structs.replace(requirements, tags=free(requirements.tags)),
        facts=facts,
    )
