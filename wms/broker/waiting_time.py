"""Predicts how long a job waits at a computing element: from a reservation, from its load, or from waits of other jobs there.

A reservation is exact. Else, where the element tells its load, the *queue model* counts: a job starts when as many jobs have left as
are before it. Jobs leave at the rate of slots over the mean run time. This follows the queue at once. Outcomes follow it late: a
wait is known hours after its placement, when other jobs have come. So outcomes at the site move the predictions slowly.
Where no load is told, the waits of other jobs count (`unseen_queue`). The element's own estimate is weighed in.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import hypot

from msgspec.structs import replace

from wms.broker.candidate import Candidate
from wms.broker.error_correction import corrected_slowly
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.prediction import UNFELT, Estimate, Predicted, Prediction, fused
from wms.broker.robust_statistics import mean_without_ends
from wms.broker.unseen_queue import predict_unseen

START_SECONDS = 20.0
"""How many seconds an element with a free slot takes to start a job."""
USUAL_RUN = 3_600.0
"""The run time in seconds that is assumed of jobs without measurements."""
_USUAL_WEIGHT = 10.0
"""The weight of the usual run time in a mean, as a number of measurements that would weigh as much."""
_RECENT = 50
_MODEL_SPREAD, _GUESSED_RUN_SPREAD, _UNSAID_SPREAD = 0.4, 0.7, 1.0
_RESOURCE_SPREAD = 1.0


def predict_waiting(job: JobToPlace, candidate: Candidate, knowledge: Knowledge, now: datetime) -> Predicted:
    """Return the predicted seconds from `now` until a job can start at a candidate, not before the job's earliest start.

    With a granted reservation there, it is the time until the reservation starts.
    """
    granted = knowledge.reservations.get(candidate.place)
    if granted is not None:
        return Predicted(reserved((granted.start_at - now).total_seconds()))
    said = _weighed(list(_estimates(job, candidate, knowledge, now)))
    said = corrected_slowly(said, knowledge, candidate.site, "waiting")
    if said.source == "free-slots":
        # What has a slot may start at once, whatever waits have been.
        said = replace(said, low=0.0)
    remarks = ("its load is not told, and no wait was measured there",) if said.source == "none" else ()
    return Predicted(not_before(said, job.seconds_to_start(now)), remarks)


def _weighed(estimates: Sequence[Estimate]) -> Prediction:
    found = fused(estimates)
    # Their errors have causes in common, so that together they are not surer than the surest.
    spread = min(each.spread for each in estimates)
    return Prediction.of(found.seconds, spread, found.source)


def reserved(seconds: float) -> Prediction:
    """Return the predicted wait for a reservation that starts in `seconds`; its interval allows a few seconds for the start."""
    exact = Prediction.exact(seconds, "reservation")
    return Prediction(
        seconds=exact.seconds,
        low=exact.seconds,
        high=exact.seconds + UNFELT,
        source="reservation",
        model_seconds=exact.seconds,
    )


def _estimates(
    job: JobToPlace, candidate: Candidate, knowledge: Knowledge, now: datetime
) -> Iterator[Estimate]:
    queue = queue_model(job, candidate, knowledge)
    if queue is not None and _free_slots(candidate) is not None:
        yield queue
    elif queue is not None or knowledge.waits.get(candidate.place) or candidate.response_seconds is None:
        yield _unseen(queue, candidate, knowledge, now)
    if candidate.response_seconds is not None:
        yield Estimate(candidate.response_seconds, _RESOURCE_SPREAD, "resource")


def _unseen(ours: Estimate | None, candidate: Candidate, knowledge: Knowledge, now: datetime) -> Estimate:
    """Return the estimate for an element that tells no load. `ours` is the queue model's, from the broker's own waiting jobs."""
    waits = knowledge.waits.get(candidate.place, ())
    said = predict_unseen(waits, knowledge.still_waiting.get(candidate.place, ()), now)
    return said if ours is None else said._replace(seconds=max(said.seconds, ours.seconds))


def queue_model(job: JobToPlace, candidate: Candidate, knowledge: Knowledge) -> Estimate | None:
    """Return the wait that follows from the element's present load.

    None if the element advertises neither free slots nor running jobs, and no job that the broker placed waits there.
    """
    ours = len(knowledge.still_waiting.get(candidate.place, ()))
    free = _free_slots(candidate)
    if free is None and not ours:
        return None
    told = (candidate.waiting_jobs or 0) + knowledge.placed_since.get(candidate.place, 0)
    leaving = max(told, ours) + max(1, job.processors) - (free or 0)
    if leaving <= 0:
        return Estimate(START_SECONDS, _MODEL_SPREAD, "free-slots")
    run, run_spread = _mean_run(candidate, knowledge)
    unsaid = _UNSAID_SPREAD if free is None else 0.0
    # The time until the n-th of independent departures has a relative error of one over the root of n.
    spread = hypot(_MODEL_SPREAD, run_spread, unsaid, leaving**-0.5)
    return Estimate(START_SECONDS + leaving * run / max(1, candidate.slots), spread, "queue-model")


def _free_slots(candidate: Candidate) -> int | None:
    if candidate.free_slots is not None:
        return max(0, min(candidate.free_slots, candidate.slots))
    if candidate.running_jobs is None:
        return None
    return max(0, candidate.slots - candidate.running_jobs)


def _mean_run(candidate: Candidate, knowledge: Knowledge) -> tuple[float, float]:
    """Return the mean run time of the jobs there in seconds, and its spread. Few measurements move the usual run time a little only.

    The first jobs to end are the short ones, so that their mean alone is far too low.
    """
    runs = knowledge.runs_there.get(candidate.place, ())[:_RECENT]
    mean = mean_without_ends(runs)
    if mean is None:
        return USUAL_RUN, _GUESSED_RUN_SPREAD
    weight = len(runs) / (len(runs) + _USUAL_WEIGHT)
    return weight * mean + (1 - weight) * USUAL_RUN, (1 - weight) * _GUESSED_RUN_SPREAD


def not_before(prediction: Prediction, least: float) -> Prediction:
    """Return the prediction of an event that does not happen before `least` seconds from now."""
    if least <= 0:
        return prediction
    return Prediction(
        seconds=max(prediction.seconds, least),
        low=max(prediction.low, least),
        high=max(prediction.high, least + UNFELT),
        source=prediction.source,
        model_seconds=prediction.model_seconds,
    )
