"""Ranks the computing elements for one job. The result has the form in which the database stores it and tools show it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from msgspec.structs import replace

from services.resource_broker.brokered_jobs import BrokeredJob
from services.resource_broker.grid_snapshot import GridSnapshot
from services.resource_broker.next_step import Assess
from wms.broker.candidate import Candidate
from wms.broker.job_to_place import FileToMove, JobToPlace, ReferenceRun
from wms.broker.knowledge import GrantedStart, Knowledge
from wms.broker.prediction import Prediction
from wms.broker.ranking import RankedCandidate, Ranking, rank
from wms.broker.time_to_delivery import DeliveryTime
from wms.ids import CeId
from wms.messages.replies import PredictedPart, RankedElement
from wms.why.notices import why_shut

TRIED = "PLACEMENT_FAILED: it was placed there before, and did not start"
REJECTED_KEPT = 200
"""The most elements that do not fit that a job's stored ranking lists after those that fit. Others are left out."""
HOSTS_KEPT = 100
"""The most storage hosts that a job's stored ranking lists for an element."""
REASONS_KEPT = 20
"""The most reasons why an element does not fit that a job's stored ranking lists for it. Others are left out."""

Rejection = Callable[[Candidate], str]
"""A function that returns why a candidate element is excluded before the ranking; empty if it is not excluded."""


def assessor(job: BrokeredJob, snapshot: GridSnapshot, rejection: Rejection) -> Assess:
    """Return the function that ranks the elements of a snapshot (the stored state of all elements) for a job.

    It lists elements as rejected, with the reason, if they take no jobs now, if it is told to leave them out, or if `rejection`
    returns a reason.
    """
    wanted = job_to_place(job)

    def assess(starts: Mapping[CeId, datetime] | None, tried: Collection[CeId]) -> tuple[RankedElement, ...]:
        out = {
            each.place: why for each in snapshot.candidates if (why := _out(each, snapshot, tried, rejection))
        }
        knowledge = snapshot.knowledge
        granted = {place: GrantedStart(start_at=start) for place, start in (starts or {}).items()}
        found = rank(
            wanted,
            [each for each in snapshot.candidates if each.place not in out],
            _with_reservations(knowledge, granted),
            snapshot.now,
            asking=starts is None,
        )
        return (*_ranked(found, wanted), *_rejected(found), *_left_out(out))

    return assess


def _with_reservations(knowledge: Knowledge, granted: Mapping[CeId, GrantedStart]) -> Knowledge:
    return replace(knowledge, reservations=granted) if granted else knowledge


def _out(each: Candidate, snapshot: GridSnapshot, tried: Collection[CeId], rejection: Rejection) -> str:
    if each.place in tried:
        return TRIED
    return why_shut(snapshot.shut, *each.place) or rejection(each)


def job_to_place(job: BrokeredJob) -> JobToPlace:
    """Return what the ranking needs of a job: its limits, files and preferences, with absolute times for its window of starts."""
    said, wishes = job.description, job.description.preferences
    told = JobToPlace(
        requirements=job.requirements,
        executable=said.executable,
        processors=said.processors,
        cpu_seconds=said.cpu_time,
        wall_seconds=said.wall_time,
        job_class=job.job_class,
        inputs=tuple(FileToMove(name=each.name, urls=each.sources, size=each.size) for each in said.inputs),
        outputs=tuple(FileToMove(name=each.name, urls=each.targets) for each in said.outputs),
        earliest_start=job.facts.window.earliest,
        latest_start=job.facts.window.latest,
        stages_ahead=said.dispatch == "direct",
    )
    if wishes is None:
        return told
    runs = (
        ReferenceRun(benchmark=each.name, result=each.result, seconds=each.seconds)
        for each in wishes.benchmarks
    )
    return replace(
        told,
        runs=tuple(runs),
        stage_in_seconds=wishes.stage_in_seconds,
        stage_out_seconds=wishes.stage_out_seconds,
        objective=wishes.objective,
        wants_reservation=wishes.reservation,
        flexible=wishes.flexible,
    )


def _ranked(found: Ranking, job: JobToPlace) -> Iterable[RankedElement]:
    return (_element(each, job) for each in found.ranked)


def _element(each: RankedCandidate, job: JobToPlace) -> RankedElement:
    aim = each.time.start if job.objective == "earliest-start" else each.time.delivery
    return RankedElement(
        site=each.candidate.site,
        ce=each.candidate.ce,
        rank=each.rank,
        seconds=aim.seconds,
        low=aim.low,
        high=aim.high,
        parts=_parts(each.time),
        reasons=(each.reason, *each.time.remarks)[:REASONS_KEPT],
        hosts=each.time.hosts[:HOSTS_KEPT],
    )


def _parts(time: DeliveryTime) -> tuple[PredictedPart, ...]:
    named = (
        ("stage_in", time.stage_in),
        ("waiting", time.waiting),
        ("execution", time.execution),
        ("stage_out", time.stage_out),
        ("delivery", time.delivery),
    )
    return tuple(_part(name, each) for name, each in named)


def _part(name: str, each: Prediction) -> PredictedPart:
    return PredictedPart(
        part=name,
        seconds=each.seconds,
        low=each.low,
        high=each.high,
        source=each.source,
        model_seconds=each.model_seconds,
    )


def _rejected(found: Ranking) -> Iterable[RankedElement]:
    return (
        RankedElement(site=each.candidate.site, ce=each.candidate.ce, reasons=each.reasons[:REASONS_KEPT])
        for each in found.rejected[:REJECTED_KEPT]
    )


def _left_out(out: Mapping[CeId, str]) -> Iterable[RankedElement]:
    return (RankedElement(site=place.site, ce=place.ce, reasons=(why,)) for place, why in out.items())
