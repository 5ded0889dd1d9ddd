"""Policies that place jobs of the simulated grid, and what the broker learns there from every job that ended."""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from bench.choices import (
    Choice,
    LateOracle,
    at_random,
    knowing_all,
    shortest_queue,
    shortest_queue_counting,
)
from bench.corrections import ScoredPrediction, corrections
from bench.grid import Grid, GridJob, GridSite, again
from bench.grid_workload import INPUT, OUTPUT
from wms.broker.knowledge import Knowledge, MeasuredRun, MeasuredTransfer, MeasuredWait
from wms.broker.prediction import Part
from wms.broker.ranking import rank
from wms.broker.replicas import storage_host
from wms.broker.selectors import Selector, earliest_completion
from wms.ids import CeId

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEPT = 100
"""The latest measurements of a kind that are kept."""
LEARNED_EACH = 600.0
"""Seconds after which knowledge is put together anew."""
PARTS: tuple[Part, ...] = ("stage_in", "waiting", "execution", "stage_out", "delivery")


class Learning:
    """What was measured of ended jobs, and the knowledge that follows."""

    def __init__(self, *, corrects: bool = True) -> None:
        self._corrects = corrects
        self._waits = _kept()
        self._runs = _kept()
        self._classes = _kept()
        self._arriving, self._leaving = _kept(), _kept()
        self._scores: deque[ScoredPrediction] = deque(maxlen=20_000)
        self.all_scores: list[ScoredPrediction] = []
        self._knowledge, self._made_at = Knowledge(), float("-inf")

    def note_start(self, job: GridJob, site: str) -> None:
        """Note how long a job waited, as the broker knows it when the job starts."""
        waited = MeasuredWait(seconds=job.parts["waiting"], at=BEGIN + timedelta(seconds=job.submitted))
        self._waits[CeId(site, "ce")].appendleft(waited)

    def learn(self, job: GridJob, site: str) -> None:
        place, parts = CeId(site, "ce"), job.parts
        self._runs[place].appendleft(job.ended - job.started)
        assert job.to_place is not None
        run = MeasuredRun(place=place, seconds=parts["execution"])
        self._classes[job.to_place.job_class].appendleft(run)
        self._arriving[site].appendleft(_transfer(job.bytes_in, parts["stage_in"], INPUT))
        self._leaving[site].appendleft(_transfer(job.bytes_out, parts["stage_out"], OUTPUT))
        if job.predicted is not None:
            self._scores.extendleft(scored(job, site))

    def knowledge(self, now: float) -> Knowledge:
        """Return what is known at a time in seconds. Waits are always the latest; the rest is put together each `LEARNED_EACH` seconds."""
        if now - self._made_at >= LEARNED_EACH:
            self._made_at = now
            self._knowledge = Knowledge(
                runs_there=_lists(self._runs),
                class_runs=_lists(self._classes),
                arriving=_lists(self._arriving),
                leaving=_lists(self._leaving),
                corrections=corrections(self._scores) if self._corrects else {},
            )
        return replace(self._knowledge, waits=_lists(self._waits))


def scored(job: GridJob, site: str) -> list[ScoredPrediction]:
    """Return the predictions of an ended job with the truth."""
    truths = job.parts | {"delivery": job.delivery}
    found = []
    for part in PARTS:
        said = getattr(job.predicted, part)
        found.append(
            ScoredPrediction(
                site=site, part=part, source=said.source, seconds=said.seconds, low=said.low, high=said.high,
                model_seconds=said.model_seconds, truth=truths[part],
            )
        )  # fmt: skip
    return found


def _kept():
    return defaultdict(lambda: deque(maxlen=KEPT))


def _lists(kept):
    return {key: list(values) for key, values in kept.items()}


def _transfer(size: int, seconds: float, url: str) -> MeasuredTransfer:
    return MeasuredTransfer(size=size, seconds=seconds, host=storage_host(url))


class Blind:
    """A run of the same jobs on the same grid by a choice that predicts nothing."""

    def __init__(self, sites: Sequence[GridSite], choose: Choice) -> None:
        self.done: list[GridJob] = []
        self._choose = choose
        self._grid = Grid(sites, self.done.append)

    def run(self, jobs: Sequence[GridJob]) -> list[GridJob]:
        self._grid.run(again(jobs), lambda job: self._choose(self._grid, job))
        return self.done


class Placing:
    """A run of the same jobs on the same grid by one selector."""

    def __init__(self, sites: Sequence[GridSite], selector: Selector, *, corrects: bool = True) -> None:
        self.done: list[GridJob] = []
        self._learning = Learning(corrects=corrects)
        self._selector = selector
        self._numbers = {site.name: number for number, site in enumerate(sites)}
        self._grid = Grid(sites, self._ended, self._has_started)

    def run(self, jobs: Sequence[GridJob]) -> list[GridJob]:
        self._grid.run(again(jobs), self._place)
        return self.done

    def _has_started(self, job: GridJob) -> None:
        self._learning.note_start(job, self._grid.sites[job.site].name)

    def _ended(self, job: GridJob) -> None:
        self.done.append(job)
        self._learning.learn(job, self._grid.sites[job.site].name)

    def _still_waiting(self) -> dict[CeId, list[float]]:
        now = self._grid.agenda.now
        ages = [[now - job.submitted for job in queue if job.home is None] for queue in self._grid.queues]
        return {told.place: each for told, each in zip(self._grid.told, ages, strict=True) if each}

    def _place(self, job: GridJob) -> int:
        assert job.to_place is not None
        known = self._learning.knowledge(job.submitted)
        since = {
            each.place: count for each, count in zip(self._grid.told, self._grid.placed_since, strict=True)
        }
        known = replace(known, placed_since=since, still_waiting=self._still_waiting())
        now = BEGIN + timedelta(seconds=job.submitted)
        best = rank(job.to_place, self._grid.told, known, now, selector=self._selector).best
        assert best is not None
        job.predicted = best.time
        return self._numbers[best.candidate.site]


def policies(seed: int) -> dict[str, Callable[[Sequence[GridSite]], Placing | Blind]]:
    """Return the policies that are compared, by name."""
    return {
        "earliest completion": lambda sites: Placing(sites, earliest_completion),
        "random": lambda sites: Blind(sites, at_random(seed)),
        "shortest queue": lambda sites: Blind(sites, shortest_queue),
        "shortest queue, own jobs counted": lambda sites: Blind(sites, shortest_queue_counting),
        "late oracle": lambda sites: Blind(sites, LateOracle()),
        "oracle": lambda sites: Blind(sites, knowing_all),
    }
