"""Carries out the next steps of jobs: agreements, placements, ends of jobs and their records, all in one transaction.

A job that another broker has claimed meanwhile is left alone. A job that its user killed or held meanwhile is not placed, and
its reservations are cancelled.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from services.resource_broker import agreements
from services.resource_broker.brokered_jobs import BrokeredJob
from services.resource_broker.next_step import ChosenElement, NextStep
from wms.db import agreement, job, job_record, placement, prediction
from wms.db.database import Transaction
from wms.db.job import JobMove
from wms.db.job_record import StepResult
from wms.db.placement import NewPlacement
from wms.db.prediction import NewPrediction
from wms.ids import AgreementId, CeId, JobId
from wms.job.job import path
from wms.job.reasons import Code, Reason
from wms.job.state import Event, State
from wms.messages.replies import RankedElement

SOURCE = "resource_broker"

Decided = tuple[BrokeredJob, NextStep]


async def carry_out(
    tx: Transaction, decided: Sequence[Decided], owner: str, lifetime_seconds: float
) -> list[JobId]:
    """Carry out the decided steps of those jobs that `owner` (a broker instance) still has claimed; return the ids of placed jobs.

    All is written in the given transaction, and messages are sent when it commits. Agreements that are asked for expire
    `lifetime_seconds` after their grant unless they are confirmed.
    """
    mine = await job_record.hold(tx, [job_id for each in decided for job_id in _concerned(*each)], owner)
    steps = {each.record.job_id: (each, step) for each, step in decided if each.record.job_id in mine}
    await _end(tx, steps)
    placed = set(await _place(tx, steps))
    agreements.cancel(tx, [(each, _cancelled(each, step, placed)) for each, step in steps.values()])
    agreements.confirm(tx, [(each, step.confirm) for each, step in steps.values()])
    await _request(tx, steps, lifetime_seconds)
    results = {job_id: _result(step, job_id, placed) for job_id, (_, step) in steps.items()}
    # What was decided for a group counts, and not that one of its jobs was to wait.
    results |= {one.job_id: one for each in steps.values() for one in _companions(*each, placed)}
    await job_record.finish(tx, list(results.values()))
    return sorted(placed)


async def _request(tx: Transaction, steps: Mapping[JobId, Decided], lifetime_seconds: float) -> None:
    wanted = [
        (each, agreements.with_moving(one, step.ranking or (), each.description.dispatch))
        for each, step in steps.values()
        for one in step.requests
    ]
    if wanted:
        agreements.request(tx, wanted, lifetime_seconds, await agreement.reservable(tx))


def _concerned(each: BrokeredJob, step: NextStep) -> tuple[JobId, ...]:
    """Return the ids of the jobs whose records a step changes: all that it places, or the job `each` alone if it places none."""
    return tuple(job_id for job_id, _ in _placings(each, step)) or (each.record.job_id,)


def _placings(each: BrokeredJob, step: NextStep) -> list[tuple[JobId, ChosenElement]]:
    """Return the ids of the jobs that a step places, each with its chosen element; empty if it places none."""
    group = each.facts.group
    ids = [one.job_id for one in group.members] if group else [each.record.job_id]
    return list(zip(ids, step.placed, strict=True)) if step.place else []


def _cancelled(each: BrokeredJob, step: NextStep, placed: set[JobId]) -> tuple[str, ...]:
    """Return the ids of agreements to cancel after a step: all that were asked for, if the job was to be placed and was not.

    `placed` are the jobs that were placed.
    """
    lost = step.place is not None and each.record.job_id not in placed
    return (*step.cancel, *step.asked) if lost else step.cancel


def _result(step: NextStep, job_id: JobId, placed: set[JobId]) -> StepResult:
    """Return what is stored of a step in a job's record. `placed` are the jobs that were placed.

    If the job should have been placed and was not, its state changed meanwhile. Its record is closed then; a leader's group
    begins again.
    """
    lost = step.place is not None and job_id not in placed
    result = StepResult(
        job_id=job_id,
        phase=step.phase,
        seconds=step.seconds,
        round=step.round,
        asked=_reserved(step.place) if step.companions else step.asked,
        ranking=step.ranking,
        reason=step.reason,
        text=step.text,
    )
    if not lost:
        return result
    return msgspec.structs.replace(result, phase="Choosing" if step.companions else "Over", asked=())


def _reserved(chosen: ChosenElement | None) -> tuple[str, ...]:
    return (chosen.agreement.agreement_id,) if chosen and chosen.agreement else ()


def _companions(each: BrokeredJob, step: NextStep, placed: set[JobId]) -> Iterable[StepResult]:
    """Yield, for the other jobs of a group that a step placed, what is stored in their records."""
    for job_id, chosen in _placings(each, step)[1:]:
        if job_id in placed:
            yield StepResult(
                job_id=job_id,
                phase=step.phase,
                round=step.round,
                asked=_reserved(chosen),
                ranking=step.ranking,
            )


def _ending(each: BrokeredJob, step: NextStep) -> tuple[JobId, ...]:
    """Return the ids of the jobs that a step holds or fails.

    If the leader of a group is held or fails, so are all its other jobs: one release or reschedule then is for all.
    """
    group = each.facts.group
    if step.end and group and group.leader == each.record.job_id:
        return tuple(one.job_id for one in group.members)
    return (each.record.job_id,) if step.end else ()


async def _end(tx: Transaction, steps: Mapping[JobId, Decided]) -> None:
    ending = {one: step for each, step in steps.values() for one in _ending(each, step)}
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
    broken = await _broken(tx, steps)
    chosen = {
        one: (each if one == job_id else each.companion(one), where)
        for job_id, (each, step) in steps.items()
        if job_id not in broken
        for one, where in _placings(each, step)
    }
    if not chosen:
        return []
    await _hand_over(tx, steps, chosen)
    placed = await placement.order(tx, [_placement(*each) for each in chosen.values()], SOURCE)
    made = [one for job_id in placed for one in predictions(*chosen[job_id])]
    await prediction.insert(tx, made)
    return placed


async def _broken(tx: Transaction, steps: Mapping[JobId, Decided]) -> set[JobId]:
    """Lock the jobs of groups that are to be placed. Return the leaders of those groups in which a job has left state Checking."""
    groups = {
        job_id: [one for one, _ in _placings(*each)] for job_id, each in steps.items() if each[1].companions
    }
    if not groups:
        return set()
    # All jobs that are placed here, so that transactions lock them in one order.
    found = await job.lock(tx, [one for each in steps.values() for one, _ in _placings(*each)])
    checking = {one for one, each in found.items() if each.state is State.CHECKING}
    return {job_id for job_id, ids in groups.items() if not checking.issuperset(ids)}


async def _hand_over(
    tx: Transaction, steps: Mapping[JobId, Decided], chosen: Mapping[JobId, tuple[BrokeredJob, ChosenElement]]
) -> None:
    """Give each agreement that a leader asked for to the job of its group that runs in it.

    These jobs get records of the broker. `chosen` are all jobs to be placed, each with its element.
    """
    theirs = {one: each for one, each in chosen.items() if one not in steps or steps[one][1].place is None}
    if not theirs:
        return
    await agreement.hand_over(
        tx, {AgreementId(name): one for one, (_, where) in theirs.items() for name in _reserved(where)}
    )
    members = (one for each, _ in theirs.values() if each.facts.group for one in each.facts.group.members)
    await job_record.adopt(tx, {one.job_id: one.seq for one in members})


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
    whole: dict[str, object] = {
        "seconds": element.seconds,
        "low": element.low,
        "high": element.high,
        "parts": parts,
    }
    return {**whole, "hosts": element.hosts} if element.hosts else whole


def predictions(each: BrokeredJob, chosen: ChosenElement) -> list[NewPrediction]:
    """Return the predicted times of a job at its chosen element, to be stored and compared with the measured times later."""
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
