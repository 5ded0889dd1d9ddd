"""Predicts how long a job waits at a computing element: from a reservation, its load, past waits and its own estimate.

A reservation is exact. Without one, the other estimates are weighted by their certainty. In the *queue model* a job starts when as many jobs have
left as are before it. Jobs leave at the rate of slots over the mean run time. The model uses the present load, but relies on the element's ad. Past
waits were really observed, but under another load.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import hypot

from msgspec.structs import replace

from wms.broker.candidate import Candidate
from wms.broker.error_correction import corrected
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.prediction import UNFELT, Estimate, Predicted, Prediction, fused
from wms.broker.robust_statistics import mean_without_ends, typical

START_SECONDS = 20.0
"""How many seconds an element with a free slot takes to start a job."""
USUAL_RUN = 3_600.0
"""The run time in seconds that is assumed of jobs without measurements."""
_RECENT = 50
_MODEL_SPREAD, _GUESSED_RUN_SPREAD, _UNSAID_SPREAD = 0.4, 1.0, 1.0
_WAITS_SPREAD, _WAITS_DRIFT = 1.0, 0.6
_RESOURCE_SPREAD, _UNKNOWN_SPREAD = 1.0, 2.0


def predict_waiting(job: JobToPlace, candidate: Candidate, knowledge: Knowledge, now: datetime) -> Predicted:
    """Return the predicted seconds from `now` until a job can start at a candidate, not before the job's earliest start.

    With a granted reservation there, it is the time until the reservation starts.
    """
    granted = knowledge.reservations.get(candidate.place)
    if granted is not None:
        return Predicted(reserved((granted.start_at - now).total_seconds()))
    said = _weighed(list(_estimates(job, candidate, knowledge)))
    mended = corrected(said.prediction, knowledge, candidate.site, "waiting")
    if mended.source == "free-slots":
        # What has a slot may start at once, whatever waits have been.
        mended = replace(mended, low=0.0)
    return said._replace(prediction=_not_before(mended, job.earliest_start, now))


def _weighed(estimates: Sequence[Estimate]) -> Predicted:
    if not estimates:
        guess = Prediction.of(USUAL_RUN, _UNKNOWN_SPREAD, "none")
        return Predicted(guess, ("its load is not told, and no wait was measured there",))
    found = fused(estimates)
    # Their errors have causes in common, so that together they are not surer than the surest.
    spread = min(each.spread for each in estimates)
    return Predicted(Prediction.of(found.seconds, spread, found.source))


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


def _estimates(job: JobToPlace, candidate: Candidate, knowledge: Knowledge) -> Iterator[Estimate]:
    if (queue := queue_model(job, candidate, knowledge)) is not None:
        yield queue
    if (past := typical(_waits(candidate, knowledge), _WAITS_SPREAD, UNFELT)) is not None:
        yield Estimate(past.median, hypot(past.spread, _WAITS_DRIFT), "history")
    if candidate.response_seconds is not None:
        yield Estimate(candidate.response_seconds, _RESOURCE_SPREAD, "resource")


def _waits(candidate: Candidate, knowledge: Knowledge) -> list[float]:
    """Return the latest waiting times in seconds. A job that still waits is expected to wait as long again as it has."""
    ended = knowledge.waits.get(candidate.place, ())[:_RECENT]
    longest = max(ended, default=0.0)
    ages = knowledge.still_waiting.get(candidate.place, ())[:_RECENT]
    # Only what is longer than all that is known tells something: any job has waited for a short time at first.
    return [*ended, *(2 * each for each in ages if ended and each > longest)]


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
    """Return the mean run time of the jobs there in seconds, and its spread."""
    mean = mean_without_ends(knowledge.runs_there.get(candidate.place, ())[:_RECENT])
    return (USUAL_RUN, _GUESSED_RUN_SPREAD) if mean is None else (mean, 0.0)


def _not_before(prediction: Prediction, earliest: datetime | None, now: datetime) -> Prediction:
    if earliest is None or earliest <= now:
        return prediction
    least = (earliest - now).total_seconds()
    return Prediction(
        seconds=max(prediction.seconds, least),
        low=max(prediction.low, least),
        high=max(prediction.high, least + UNFELT),
        source=prediction.source,
        model_seconds=prediction.model_seconds,
    )
