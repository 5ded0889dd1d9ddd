"""Predicts a job's run time from the user's reference run times, scaled by benchmarks, and from measured run times of similar jobs.

A job's run time is taken to be in inverse proportion to a benchmark's result, as in the cited reference. Several benchmarks give
several times, of which the *geometric mean* is taken. Benchmarks measure ratios, and only this mean is the same whichever machine
the results are related to. Each counts alike, since the user says of none that it fits better.

Similar jobs are those of the same job class, such as those of one owner and program. Their run times were measured at the
candidate itself, where nothing is scaled, or at other elements. These are scaled by a benchmark that both elements have. The
three estimates are weighted by their certainty. This depends on the number and the scatter of the measurements, never on the
candidate's own benchmark results. So a better benchmark result never gives a longer prediction.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, hypot, log
from typing import NamedTuple

from wms.broker.benchmark_names import benchmark_key, is_result
from wms.broker.candidate import Benchmarks, Candidate
from wms.broker.error_correction import corrected
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge, MeasuredRun
from wms.broker.prediction import Estimate, Predicted, Prediction, bounded, fused
from wms.broker.robust_statistics import Typical, typical
from wms.broker.waiting_time import USUAL_RUN
from wms.ids import CeId

COMMON = ("hepscore23", "hepspec06", "specint2000", "specfp2000")
"""Benchmarks, best first, that compare two computing elements if the candidate has none of those that the job names."""
_RECENT = 200
_BENCHMARK_SPREAD, _CLASS_SPREAD = 0.25, 0.3
_UNSCALED_SPREAD, _USER_SPREAD, _GUESS_SPREAD = 0.5, 0.6, 1.2
_OF_LIMIT = 0.3
"""The share of its time limit that a job is assumed to run when nothing else is known."""


class _Class(NamedTuple):
    """The measured run times of jobs of one class: at the candidate, and at other elements. `is_scaled`: the latter are scaled to the candidate."""

    here: Typical | None
    elsewhere: Typical | None
    is_scaled: bool

    @property
    def spread(self) -> float:
        """The spread of one job's run time: the standard deviation of the logarithm, from the larger of the two sets of measurements."""
        known = [each for each in (self.here, self.elsewhere) if each is not None]
        return max(known, key=lambda each: each.number).spread if known else _CLASS_SPREAD / 2


def predict_execution(
    job: JobToPlace,
    candidate: Candidate,
    knowledge: Knowledge,
    speeds: Mapping[CeId, Benchmarks],
) -> Predicted:
    """Return the predicted run time of the job's payload at a candidate, in seconds, and at most the job's own limits.

    `speeds` are the benchmark results of the computing elements where jobs of this class were measured. Without benchmarks and measurements, the
    user's estimate is returned. Without an estimate, it is 30 % of the job's limit, or an hour if there is no limit.
    """
    scaled = _by_benchmarks(job, candidate.benchmarks)
    measured = _by_class(job, candidate, knowledge, speeds)
    estimates = [*([scaled] if scaled else []), *_of_class(measured)]
    remarks = tuple(_remarks(job, candidate))
    if not estimates:
        said = _last_resort(job)
    else:
        found = fused(estimates)
        spread = hypot(found.spread, measured.spread, _disagreement(job, candidate.benchmarks))
        said = Prediction.of(found.seconds, spread, found.source)
    return Predicted(_within(corrected(said, knowledge, candidate.site, "execution"), job.run_limit), remarks)


def scaled_times(job: JobToPlace, benchmarks: Benchmarks) -> list[float]:
    """Return the job's predicted run times in seconds, one for each of its reference runs whose benchmark the element advertises.

    `benchmarks` are the element's results by `benchmark_key`. The list is empty if there is no such benchmark.
    """
    return [
        bounded(run.seconds * run.result / benchmarks[key])
        for run in job.runs
        if is_result(run.result) and is_result(benchmarks.get(key := benchmark_key(run.benchmark)))
    ]


def _by_benchmarks(job: JobToPlace, benchmarks: Benchmarks) -> Estimate | None:
    times = scaled_times(job, benchmarks)
    if not times:
        return None
    return Estimate(_geometric_mean(times), _BENCHMARK_SPREAD * len(times) ** -0.5, "benchmark")


def _disagreement(job: JobToPlace, benchmarks: Benchmarks) -> float:
    """Return how much the times by several benchmarks differ, as a standard deviation of logarithms. It widens the prediction's interval only."""
    logs = [log(max(each, 1e-9)) for each in scaled_times(job, benchmarks)]
    return (max(logs) - min(logs)) / 2 if logs else 0.0


def _geometric_mean(times: Sequence[float]) -> float:
    return exp(sum(log(max(each, 1e-9)) for each in times) / len(times))


def _by_class(
    job: JobToPlace, candidate: Candidate, knowledge: Knowledge, speeds: Mapping[CeId, Benchmarks]
) -> _Class:
    runs = knowledge.class_runs.get(job.job_class, ())[:_RECENT] if job.job_class else ()
    here = [each.seconds for each in runs if each.place == candidate.place]
    others = [each for each in runs if each.place != candidate.place]
    scaled = list(_scaled(job, candidate, others, speeds))
    elsewhere = scaled or [each.seconds for each in others]
    return _Class(typical(here, _CLASS_SPREAD), typical(elsewhere, _CLASS_SPREAD), bool(scaled))


def _scaled(
    job: JobToPlace, candidate: Candidate, runs: Sequence[MeasuredRun], speeds: Mapping[CeId, Benchmarks]
) -> Iterator[float]:
    """Yield run times measured at other elements, in seconds. Each is scaled by the first benchmark that that element and the candidate both have."""
    names = [*(benchmark_key(each.benchmark) for each in job.runs), *COMMON]
    name = next((each for each in names if is_result(candidate.benchmarks.get(each))), None)
    if name is None:
        return
    for each in runs:
        there = speeds.get(each.place, {}).get(name)
        if there is not None and is_result(there):
            yield bounded(each.seconds * there / candidate.benchmarks[name])


def _of_class(measured: _Class) -> Iterator[Estimate]:
    if measured.here is not None:
        yield Estimate(measured.here.median, measured.here.of_median, "history")
    if measured.elsewhere is not None:
        scaling = _BENCHMARK_SPREAD if measured.is_scaled else _UNSCALED_SPREAD
        yield Estimate(measured.elsewhere.median, hypot(scaling, measured.elsewhere.of_median), "history")


def _last_resort(job: JobToPlace) -> Prediction:
    """Return a prediction from the user's estimate without scaling; else from a share of the job's limit; else the usual run time."""
    times = [each.seconds for each in job.runs if each.seconds > 0]
    if times:
        return Prediction.of(_geometric_mean(times), _USER_SPREAD, "user")
    limit = job.run_limit
    return Prediction.of(USUAL_RUN if limit is None else _OF_LIMIT * limit, _GUESS_SPREAD, "none")


def _within(prediction: Prediction, limit: float | None) -> Prediction:
    """Return the prediction, cut at the limit in seconds, because a job that reaches its limit is ended. None: no limit."""
    if limit is None:
        return prediction
    most = bounded(limit)
    return Prediction(
        seconds=min(prediction.seconds, most),
        low=min(prediction.low, most),
        high=min(prediction.high, most),
        source=prediction.source,
        model_seconds=min(prediction.model_seconds, most),
    )


def _remarks(job: JobToPlace, candidate: Candidate) -> Iterator[str]:
    for each in job.runs:
        if not is_result(candidate.benchmarks.get(benchmark_key(each.benchmark))):
            yield f"{candidate.ce} does not tell its {each.benchmark}"
