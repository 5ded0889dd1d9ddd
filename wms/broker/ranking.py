"""Ranks the candidates for a job by where it is delivered, or starts, first, with a reason for each rank or rejection."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from wms.broker.benchmark_limits import believable
from wms.broker.candidate import Candidate
from wms.broker.filter import RejectedCandidate, filter_candidates
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.prediction import Prediction
from wms.broker.selectors import SELECTORS, Order, Selector
from wms.broker.time_to_delivery import DeliveryTime, predict_delivery
from wms.matching.clauses import Mismatch, Negative

LATEST_START = "latest start"
"""The name of the rule that rejects a candidate where the job cannot start by its latest start."""


class RankedCandidate(Struct, frozen=True, kw_only=True):
    """A computing element where the job can run, with its predicted times. `rank` is 1 for the best."""

    rank: int
    candidate: Candidate
    time: DeliveryTime
    reason: str
    """A sentence for the user: in how many seconds the job starts or is delivered, and how long after the best."""


class Ranking(Struct, frozen=True, kw_only=True):
    """The ranked candidates, which can run the job, best first; and the rejected ones, by site and element name."""

    ranked: tuple[RankedCandidate, ...]
    rejected: tuple[RejectedCandidate, ...]

    @property
    def best(self) -> RankedCandidate | None:
        """The best candidate; None if the job can run at none."""
        return self.ranked[0] if self.ranked else None


class _Judged(NamedTuple):
    late: bool
    """Whether the job starts there in time only with a reservation."""
    order: Order
    candidate: Candidate
    time: DeliveryTime


def rank(
    job: JobToPlace,
    candidates: Sequence[Candidate],
    knowledge: Knowledge,
    now: datetime,
    *,
    negatives: Sequence[Negative] = (),
    selector: Selector | None = None,
    asking: bool = False,
) -> Ranking:
    """Rank the candidates for a job, by the job's objective unless a `selector` is given, and return the ranking.

    A candidate is rejected if even the lower end of its predicted start is after the job's latest start. `asking` means that
    sites are to be asked for reservations next. A candidate that its queue alone makes too late is not rejected then, if it can be
    reserved: it is ranked after those that are in time.

    Candidates that the selector considers equal are sorted by site and name, so that the same input gives the same ranking.
    `negatives` are further checks, each of which may reject a candidate with a reason.
    """
    fitting, rejected = filter_candidates(job, candidates, knowledge, negatives)
    selector = selector or SELECTORS[job.objective]
    believed = {each.place: each for each in believable(candidates)}
    speeds = {place: each.benchmarks for place, each in believed.items()}
    judged, late = [], []
    for each in fitting:
        time = predict_delivery(job, believed[each.place], knowledge, now, speeds)
        missed = _missed(job, time.start.low, now)
        # A reservation passes the queue, but not the transfer of the inputs.
        askable = asking and job.wants_reservation and each.reserves
        if missed and not (askable and _missed(job, time.stage_in.low, now) is None):
            late.append(RejectedCandidate(candidate=each, failing=(missed,)))
        else:
            judged.append(_Judged(missed is not None, selector(each, time), each, time))
    # The sort is stable, and the filter's order is that of site and name.
    judged.sort(key=lambda each: (each.late, each.order))
    return Ranking(
        ranked=tuple(_ranked(judged, job)),
        rejected=tuple(sorted((*rejected, *late), key=lambda each: each.candidate.place)),
    )


def _missed(job: JobToPlace, seconds: float, now: datetime) -> Mismatch | None:
    """Return the mismatch of a start in `seconds` with the job's latest start; None if it is in time."""
    if job.latest_start is None:
        return None
    left = (job.latest_start - now).total_seconds()
    if seconds <= left:
        return None
    return Mismatch(
        LATEST_START,
        f"it could start in {seconds:.0f} s at the earliest, and must in {max(0.0, left):.0f} s",
    )


def _ranked(judged: Sequence[_Judged], job: JobToPlace) -> Iterable[RankedCandidate]:
    for number, each in enumerate(judged, 1):
        yield RankedCandidate(
            rank=number,
            candidate=each.candidate,
            time=each.time,
            reason=_reason(job, each, judged[0]),
        )


def _aim(job: JobToPlace, time: DeliveryTime) -> Prediction:
    return time.start if job.objective == "earliest-start" else time.delivery


def _reason(job: JobToPlace, each: _Judged, first: _Judged) -> str:
    own, best = _aim(job, each.time), _aim(job, first.time)
    what = "starts" if job.objective == "earliest-start" else "is delivered"
    behind = own.seconds - best.seconds
    how = f", {behind:.0f} s after the first" if behind >= 1 else ""
    how += "; in time only with a reservation" if each.late else ""
    return f"{what} in {own.seconds:.0f} s ({own.low:.0f} to {own.high:.0f}){how}"
