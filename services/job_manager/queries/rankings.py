"""Answers about jobs that the resource broker places, and about how well its predictions came true."""

from collections.abc import Iterable

import msgspec

from wms.auth.principal import Principal
from wms.broker.prediction import UNFELT
from wms.db import agreement, job_record, placement, prediction
from wms.db.database import Transaction
from wms.db.placement import Placement
from wms.errors import Rejected
from wms.job.job import Job
from wms.messages import queries as asked
from wms.messages import replies

REJECTED_SHOWN = 200
"""The most ranked computing elements in an answer, and also the most rejected ones."""


async def show_ranking(tx: Transaction, found: Job, query: asked.ShowRanking) -> replies.JobRanking:
    """Return how the resource broker ranked computing elements for a job and where it placed it.

    The caller has checked that the asker may see the job. Raise Rejected if the broker does not place it.
    """
    if not found.brokered:
        raise Rejected(
            "NOT_BROKERED",
            f"job {found.job_id} is not placed by the broker: pilots take it from its task queue",
            "`wms why` tells where it could run; a job with [preferences] is brokered",
        )
    record = await job_record.of_job(tx, found.job_id)
    placements = await placement.of_job(tx, found.job_id)
    elements = record.ranking if record else ()
    return replies.JobRanking(
        query_id=query.query_id,
        client=query.client,
        job_id=found.job_id,
        state=found.state,
        phase=record.phase if record else "",
        reason=record.reason if record else "",
        reason_text=record.reason_text if record else "",
        rounds=record.round if record else 0,
        ranked_at=record.ranked_at if record else None,
        elements=_shown(elements),
        placements=tuple(map(_placement, placements)),
        agreements=await _agreements(tx, elements),
        elements_total=len(elements),
    )


def _shown(elements: Iterable[replies.RankedElement]) -> tuple[replies.RankedElement, ...]:
    every = tuple(elements)
    ranked = sorted((each for each in every if each.rank), key=lambda each: each.rank)
    return (*ranked[:REJECTED_SHOWN], *[each for each in every if not each.rank][:REJECTED_SHOWN])


async def _agreements(
    tx: Transaction, elements: Iterable[replies.RankedElement]
) -> tuple[replies.AgreementLine, ...]:
    """Return the last agreement that was asked for at each of the ranked elements, in its present state."""
    asked_for = [each.agreement_id for each in elements if each.agreement_id]
    return tuple(
        replies.AgreementLine(
            agreement_id=each.agreement_id,
            site=each.site,
            ce=each.ce,
            state=each.state,
            start_at=each.start_at,
            ends_at=each.ends_at,
            reservation=each.reservation,
            expires_at=each.expires_at,
            reason=each.code,
            reason_text=each.text,
        )
        for each in (await agreement.read(tx, asked_for)).values()
    )


def _placement(each: Placement) -> replies.PlacementLine:
    fields = msgspec.structs.asdict(each)
    return replies.PlacementLine(**{name: fields[name] for name in replies.PlacementLine.__struct_fields__})


async def list_predictions(
    tx: Transaction, _principal: Principal, query: asked.ListPredictions
) -> replies.Calibrations:
    """Return how accurate the broker's predictions were. Everybody may see that, because it is about sites and not about jobs."""
    rows = await prediction.calibration(tx, query.by, UNFELT)
    lines = tuple(replies.CalibrationLine(**row) for row in rows)
    return replies.Calibrations(query_id=query.query_id, client=query.client, lines=lines)
