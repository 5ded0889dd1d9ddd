"""Carries out the next steps of jobs: agreements, placements, ends and records, all in one transaction.

A job that another broker took over meanwhile is left alone. One that its user killed or held meanwhile is not placed, and what was
reserved for it is cancelled.
"""

from collections.abc import Mapping, Sequence

import msgspec

from services.resource_broker import agreements
from services.resource_broker.brokered_jobs import BrokeredJob
from services.resource_broker.next_step import ChosenElement, NextStep
from wms.db import job, job_record, placement, prediction
from wms.db.database import Transaction
from wms.db.job import JobMove
from wms.db.job_record import StepResult
from wms.db.placement import NewPlacement
from wms.db.prediction import NewPrediction
from wms.ids import CeId, JobId
from wms.job.job import path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State
from wms.messages.replies import RankedElement

SOURCE = "resource_broker"

Decided = tuple[BrokeredJob, NextStep]


async def carry_out(
    tx: Transaction, decided: Sequence[Decided], owner: str, lifetime_seconds: float
) -> list[JobId]:
    """Carry out steps of jobs that this broker still has; return the placed jobs. Unconfirmed agreements live so many seconds."""
    mine = await job_record.hold(tx, [each.record.job_id for each, _ in decided], owner)
    steps = {each.record.job_id: (each, step) for each, step in decided if each.record.job_id in mine}
    await _end(tx, steps)
    placed = set(await _place(tx, steps))
    agreements.cancel(tx, [(each, _cancelled(each, step, placed)) for each, step in steps.values()])
    agreements.confirm(tx, [(each, step.confirm) for each, step in steps.values() if step.confirm])
    agreements.request(
        tx, [(each, one) for each, step in steps.values() for one in step.requests], lifetime_seconds
    )
    await job_record.finish(tx, [_result(step, job_id, placed) for job_id, (_, step) in steps.items()])
    return sorted(placed)


def _cancelled(each: BrokeredJob, step: NextStep, placed: set[JobId]) -> tuple[str, ...]:
    """Return the agreements that are not needed any more."""
    lost = step.place is not None and each.record.job_id not in placed
    return (*step.cancel, *step.asked) if lost else step.cancel


def _result(step: NextStep, job_id: JobId, placed: set[JobId]) -> StepResult:
    """Return what is stored of a step; a job that could not be placed has moved on by itself."""
    lost = step.place is not None and job_id not in placed
    return StepResult(
        job_id=job_id,
        phase="Over" if lost else step.phase,
        seconds=step.seconds,
        round=step.round,
        asked=() if lost else step.asked,
        ranking=step.ranking,
        reason=step.reason,
        text=step.text,
    )


async def _end(tx: Transaction, steps: Mapping[JobId, Decided]) -> None:
    ending = {job_id: step for job_id, (_, step) in steps.items() if step.end}
    if not ending:
        return
    found = await job.lock(tx, ending)
    moves = []
    for each in found.values():
        step = ending[each.job_id]
        event = Event.HOLD if step.end == "hold" else Event.FAIL
        reason = Reason(Code(step.reason), step.text)
        if each.state is State.CHECKING:
            moves.append(
                JobMove(
                    job=each,
                    steps=path(each.state, (event, reason)),
                    attempts=each.attempts,
                    unstarted=each.unstarted,
                )
            )
    await job.move(tx, moves, SOURCE)


async def _place(tx: Transaction, steps: Mapping[JobId, Decided]) -> list[JobId]:
    chosen = {job_id: (each, step.place) for job_id, (each, step) in steps.items() if step.place}
    if not chosen:
        return []
    placed = await placement.order(tx, [_placement(*each) for each in chosen.values()], SOURCE)
    made = [one for job_id in placed for one in predictions(*chosen[job_id])]
    await prediction.insert(tx, made)
    return placed


def _placement(each: BrokeredJob, chosen: ChosenElement) -> NewPlacement:
    element, held = chosen.element, chosen.agreement
    return NewPlacement(
        job_id=each.record.job_id,
        site=element.site,
        ce=element.ce,
        rank=element.rank,
        dispatch=each.description.dispatch or "pilot",
        agreement_id=held.agreement_id if held else None,
        reservation=held.reservation if held else "",
        start_at=held.start_at if held else None,
        latest_start=each.facts.window.latest,
        predicted=_predicted(element),
    )


def _predicted(element: RankedElement) -> dict[str, object]:
    parts = {each.part: msgspec.to_builtins(each) for each in element.parts}
    return {"seconds": element.seconds, "low": element.low, "high": element.high, "parts": parts}


def predictions(each: BrokeredJob, chosen: ChosenElement) -> list[NewPrediction]:
    """Return the predictions to keep of a placement: its parts, and the whole if it is known."""
    element = chosen.element
    return [
        NewPrediction(
            job_id=each.record.job_id,
            part=part.part,  # type: ignore[arg-type] # the database refuses others
            place=CeId(element.site, element.ce),
            source=part.source,
            seconds=part.seconds,
            low=part.low,
            high=part.high,
            model_seconds=part.model_seconds,
            job_class=each.job_class if part.part == "execution" else "",
        )
        for part in element.parts
    ]
