"""Jobs in the hands of the broker: their records, descriptions, requirements, failed placements and agreements."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from services.resource_broker.next_step import FailedPlacement, HeldAgreement, StepFacts
from wms.broker.placement import PlacementFault
from wms.broker.start_window import start_window
from wms.db import agreement, candidate, task_queue
from wms.db.candidate import FailedAtPlace
from wms.db.database import Transaction
from wms.db.job_record import ClaimedRecord
from wms.ids import CeId
from wms.jobdesc.description import JobDescription
from wms.matching.binding import free
from wms.matching.grouping import Requirements

PAUSE_SECONDS = 60.0
"""Seconds in which an element that could not be reached is not chosen again; each failure there adds as many."""

_decoder = msgspec.json.Decoder(JobDescription)


class BrokeredJob(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed job with all that its next step depends on."""

    record: ClaimedRecord
    description: JobDescription
    requirements: Requirements
    """What it asks of elements, without the tag that binds its pilot."""
    facts: StepFacts

    @property
    def job_class(self) -> str:
        """A name that jobs share whose run times tell of each other's: same owner, program and group of jobs."""
        said = self.description
        named = (*self.record.identity, said.executable, said.job_group, said.job_type, str(said.processors))
        return hashlib.blake2b("\0".join(named).encode(), digest_size=16).hexdigest()

    def site_of(self, agreement_id: str) -> str:
        """Return the site that was asked for an agreement; empty if it is not this job's."""
        held = self.facts.agreements.get(agreement_id)
        ranked = (each.site for each in self.record.ranking if each.agreement_id == agreement_id)
        return held.place.site if held else next(ranked, "")


async def load(tx: Transaction, records: Sequence[ClaimedRecord]) -> list[BrokeredJob]:
    """Return the jobs of claimed records, in their order."""
    required = await task_queue.read(tx, [each.tq_id for each in records])
    held = await _agreements(tx, [name for each in records for name in each.asked])
    failed = await candidate.failures(tx, [each.job_id for each in records])
    return [
        _job(each, required[each.tq_id], held, [one for one in failed if one.job_id == each.job_id])
        for each in records
    ]


async def _agreements(tx: Transaction, ids: Sequence[str]) -> dict[str, HeldAgreement]:
    """Return agreements by their ids; those that no site has heard of are left out."""
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
    requirements: Requirements,
    held: dict[str, HeldAgreement],
    failed: Iterable[FailedAtPlace],
) -> BrokeredJob:
    description = _decoder.decode(record.body)
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
        failed=_failed_placements(each for each in failed if each.created_at >= record.since),
        ranking=record.ranking,
    )
    return BrokeredJob(
        record=record,
        description=description,
        requirements=msgspec.structs.replace(requirements, tags=free(requirements.tags)),
        facts=facts,
    )


def _failed_placements(failures: Iterable[FailedAtPlace]) -> tuple[FailedPlacement, ...]:
    """Return failed placements with the times from which their elements may be chosen again: each failure makes it later."""
    seen: Counter[CeId] = Counter()
    found = []
    for each in failures:
        seen[each.place] += 1
        pause = _pauses(each.code, seen[each.place])
        again_at = None if pause is None else each.created_at + timedelta(seconds=PAUSE_SECONDS * pause)
        found.append(FailedPlacement(each.place, each.reason, again_at))
    return tuple(found)


def _pauses(code: str, failures: int) -> int | None:
    """Return for how many pauses an element is avoided after so many failures there; None: until a user acts."""
    if code == PlacementFault.NOT_ARRIVED:
        return failures - 1
    return failures if code == PlacementFault.UNREACHABLE else None
