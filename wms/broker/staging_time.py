"""Predicts the times to transfer a job's input and output files: file sizes divided by measured bandwidths.

Of several replicas, the one that is fastest to transfer counts. Where sizes or bandwidths are unknown, the user's estimate is used, or else a guess.
Files are assumed to be transferred one after another, since parallel transfers share one network line.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from wms.broker.candidate import Candidate
from wms.broker.error_correction import corrected
from wms.broker.job_to_place import FileToMove, JobToPlace
from wms.broker.knowledge import Knowledge, MeasuredTransfer
from wms.broker.prediction import Estimate, Part, Predicted, Prediction
from wms.broker.replicas import is_near, storage_hosts
from wms.broker.robust_statistics import Typical, typical

PER_FILE = 1.0
"""The overhead of each transfer in seconds, however small the file is."""
NEAR_RATE, FAR_RATE = 50e6, 10e6
"""The bandwidth assumed without measurements, in bytes a second: from storage near the element, and from elsewhere."""
USUAL_SIZE = 100_000_000
"""The size in bytes that is assumed of a file of unknown size."""
_MEASURED_SPREAD, _GUESSED_SPREAD, _USER_SPREAD = 0.5, 1.2, 0.7
_LEAST_SIZE = 100_000
"""The least size in bytes of a transfer from which the bandwidth is estimated. Smaller ones tell nothing of it."""
_RECENT = 100


class _Move(NamedTuple):
    """The transfer of one file: its predicted seconds, their spread, and whether size and bandwidth are known rather than assumed."""

    seconds: float
    spread: float
    is_known: bool


def predict_stage_in(job: JobToPlace, candidate: Candidate, knowledge: Knowledge) -> Predicted:
    """Return the predicted time in seconds to transfer all input files of a job to a candidate."""
    return _predict(job.inputs, job.stage_in_seconds, candidate, knowledge, "stage_in")


def predict_stage_out(job: JobToPlace, candidate: Candidate, knowledge: Knowledge) -> Predicted:
    """Return the predicted time in seconds to transfer a job's output files from a candidate, each to all its targets."""
    each_way = [replace(each, urls=(url,)) for each in job.outputs for url in each.urls]
    return _predict(each_way, job.stage_out_seconds, candidate, knowledge, "stage_out")


def replica_order(job: JobToPlace, candidate: Candidate, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the storage hosts of a job's inputs in the order in which replicas are fetched at a candidate: the fastest first.

    The prediction takes each file from the first of its hosts. Empty if no input has a choice.
    """
    choices = [hosts for each in job.inputs if len(hosts := storage_hosts(each, knowledge)) > 1]
    rates = _Rates(candidate, knowledge.arriving.get(candidate.site, ())[:_RECENT])
    return tuple(sorted(frozenset[str]().union(*choices) - {""}, key=lambda host: (-rates.rate(host), host)))


def _predict(
    files: Sequence[FileToMove], users: float | None, candidate: Candidate, knowledge: Knowledge, part: Part
) -> Predicted:
    measured = knowledge.arriving if part == "stage_in" else knowledge.leaving
    rates = _Rates(candidate, measured.get(candidate.site, ())[:_RECENT])
    moves = [rates.move(storage_hosts(each, knowledge), _size(each, knowledge)) for each in files]
    unknown = [each.name for each, move in zip(files, moves, strict=True) if not move.is_known]
    said = _whole(moves, users, known=not unknown)
    remarks = (f"size or bandwidth unknown of {unknown[0]}",) if unknown else ()
    if said.spread == 0:
        return Predicted(Prediction.exact(said.seconds, said.source), remarks)
    prediction = Prediction.of(said.seconds, said.spread, said.source)
    return Predicted(corrected(prediction, knowledge, candidate.site, part), remarks)


def _whole(moves: Sequence[_Move], users: float | None, *, known: bool) -> Estimate:
    if users is not None and not (known and moves):
        return Estimate(users, _USER_SPREAD if users else 0.0, "user")
    seconds = sum(each.seconds for each in moves)
    return Estimate(
        seconds, max((each.spread for each in moves), default=0.0), "replicas" if known else "none"
    )


def _size(file: FileToMove, knowledge: Knowledge) -> int | None:
    """Return a file's size in bytes: as a catalogue or storage states it, else as the user does; None if neither does."""
    told = (size for url in file.urls if (size := knowledge.sizes.get(url)) is not None)
    return next(told, file.size)


class _Rates:
    """The bandwidth, in bytes a second, between a candidate and each storage host, from transfers measured at the candidate's site."""

    def __init__(self, candidate: Candidate, transfers: Sequence[MeasuredTransfer]) -> None:
        self._candidate = candidate
        self._rates: dict[str, list[float]] = {}
        for each in transfers:
            if each.size >= _LEAST_SIZE and each.seconds > 0:
                self._rates.setdefault(each.host, []).append(each.size / each.seconds)
        self._known: dict[str, Typical | None] = {}

    def move(self, hosts: frozenset[str], size: int | None) -> _Move:
        """Return the fastest transfer of a file from any of these hosts. `size` is in bytes; None: unknown."""
        return min((self._from(host, size) for host in sorted(hosts)), key=lambda each: each.seconds)

    def _from(self, host: str, size: int | None) -> _Move:
        measured = self._measured(host)
        rate = self.rate(host)
        spread = measured.spread if measured and size is not None else _GUESSED_SPREAD
        bytes_ = USUAL_SIZE if size is None else size
        return _Move(PER_FILE + bytes_ / max(rate, 1.0), spread, size is not None and measured is not None)

    def rate(self, host: str) -> float:
        """Return the bandwidth from a host in bytes a second: as measured, else a guess."""
        measured = self._measured(host)
        guess = NEAR_RATE if is_near(self._candidate, host) else FAR_RATE
        return measured.median if measured else guess

    def _measured(self, host: str) -> Typical | None:
        if host not in self._known:
            own = self._rates.get(host) if host else None
            self._known[host] = typical(own or self._all(), _MEASURED_SPREAD)
        return self._known[host]

    def _all(self) -> Iterable[float]:
        return (rate for rates in self._rates.values() for rate in rates)
