"""Predicts a job's total time to delivery: the sum of input transfer, wait, run and output transfer, each from its predictor."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from wms.broker.candidate import Benchmarks, Candidate
from wms.broker.error_correction import corrected
from wms.broker.execution_time import predict_execution
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.prediction import Prediction, total
from wms.broker.staging_time import predict_stage_in, predict_stage_out, replica_order
from wms.broker.waiting_time import not_before, predict_waiting
from wms.ids import CeId


class DeliveryTime(Struct, frozen=True, kw_only=True):
    """The predicted times of a job at one candidate: four parts, and the start and delivery in seconds from now."""

    stage_in: Prediction
    waiting: Prediction
    execution: Prediction
    stage_out: Prediction
    start: Prediction
    """The time until the payload starts: after stage-in and waiting."""
    delivery: Prediction
    """The time until all outputs are at their targets."""
    remarks: tuple[str, ...] = ()
    """Texts for the user on data that the predictors lacked."""
    hosts: tuple[str, ...] = ()
    """The storage hosts of the inputs in the order in which replicas are to be fetched, for which the prediction holds."""


def predict_delivery(
    job: JobToPlace,
    candidate: Candidate,
    knowledge: Knowledge,
    now: datetime,
    speeds: Mapping[CeId, Benchmarks],
) -> DeliveryTime:
    """Return the predicted time from `now` to delivery of a job at a candidate, corrected by past errors of the predictors.

    `speeds` are the benchmark results of the computing elements where jobs of the same class were measured.
    """
    staged = predict_stage_in(job, candidate, knowledge)
    waits = predict_waiting(_fetching_first(job, candidate, staged.prediction), candidate, knowledge, now)
    parts = (
        staged,
        waits,
        predict_execution(job, candidate, knowledge, speeds),
        predict_stage_out(job, candidate, knowledge),
    )
    stage_in, waiting, execution, stage_out = (each.prediction for each in parts)
    remarks = tuple(remark for each in parts for remark in each.remarks)
    time = delivery_time(
        stage_in,
        waiting,
        execution,
        stage_out,
        stages_ahead=job.stages_ahead,
        least=job.seconds_to_start(now),
        remarks=remarks,
    )
    return replace(
        time,
        delivery=corrected(time.delivery, knowledge, candidate.site, "delivery"),
        hosts=replica_order(job, candidate, knowledge),
    )


def delivery_time(
    stage_in: Prediction,
    waiting: Prediction,
    execution: Prediction,
    stage_out: Prediction,
    *,
    stages_ahead: bool = False,
    least: float = 0.0,
    remarks: tuple[str, ...] = (),
) -> DeliveryTime:
    """Return the time to delivery that results from its four parts. Their errors are assumed to be independent.

    With `stages_ahead` the inputs are transferred while the job waits, so that it starts when both are done. It does not start
    before `least` seconds from now.
    """
    start = later(stage_in, waiting) if stages_ahead else total([stage_in, waiting], waiting.source)
    start = not_before(start, least)
    return DeliveryTime(
        stage_in=stage_in,
        waiting=waiting,
        execution=execution,
        stage_out=stage_out,
        start=start,
        delivery=total([start, execution, stage_out], execution.source),
        remarks=remarks,
    )


def _fetching_first(job: JobToPlace, candidate: Candidate, stage_in: Prediction) -> JobToPlace:
    """Return the job with the earliest start of its slot. A pilot's reservation begins so much before the program as its files need."""
    reserved = job.wants_reservation and candidate.reserves and not job.stages_ahead
    if job.earliest_start is None or not reserved:
        return job
    return replace(job, earliest_start=job.earliest_start - timedelta(seconds=stage_in.high))


def later(one: Prediction, other: Prediction) -> Prediction:
    """Return the prediction of the later of two events: its median and both ends are the greater of the two."""
    return Prediction(
        seconds=max(one.seconds, other.seconds),
        low=max(one.low, other.low),
        high=max(one.high, other.high),
        source=max((one, other), key=lambda each: each.seconds).source,
        model_seconds=max(one.seconds, other.seconds),
    )
