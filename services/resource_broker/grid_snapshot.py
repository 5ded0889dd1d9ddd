"""The grid snapshot: the state of all computing elements and past measurements there, cached for seconds and shared by many jobs' steps."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from wms.broker.candidate import Candidate, advertised_candidate
from wms.broker.knowledge import Correction, Knowledge, MeasuredRun, MeasuredTransfer, MeasuredWait
from wms.broker.prediction import UNFELT
from wms.db import agreement, candidate, ce_state, instance, prediction
from wms.db.candidate import FreshElement
from wms.db.database import Transaction
from wms.ids import CeId
from wms.messages.agreements import offers_consumer
from wms.why.notices import shut_out

CANDIDATES_SECONDS = 0.5
"""Seconds for which the elements, their load and their waiting jobs are used before they are read again."""
KNOWLEDGE_SECONDS = 10.0
"""Seconds for which past measurements are used before they are read again. Run times of the jobs' own classes are read each time."""
SAMPLES = 100
"""The most measurements of one kind, the latest ones, that are read for one computing element or site."""
WAITING = 1_000
"""The most waiting jobs that are read for one computing element: those that have waited longest."""


class GridSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All computing elements as candidates for jobs, and the measurements by which times there are predicted.

    `shut` maps each element that takes no jobs now to the reason. `now` is the database's time.
    """

    candidates: tuple[Candidate, ...]
    shut: Mapping[CeId, str]
    knowledge: Knowledge
    now: datetime

    @property
    def reservable(self) -> frozenset[CeId]:
        """The ids of the computing elements that can be reserved, as a service of their site decides on agreements."""
        return frozenset(each.place for each in self.candidates if each.reserves)

    def with_job_at(self, place: CeId) -> "GridSnapshot":
        """Return a copy of this snapshot in which one more job waits at a computing element."""
        known = self.knowledge
        since = {**known.placed_since, place: known.placed_since.get(place, 0) + 1}
        waiting = {**known.still_waiting, place: (*known.still_waiting.get(place, ()), 0.0)}
        return replace(self, knowledge=replace(known, placed_since=since, still_waiting=waiting))


def _candidate(each: FreshElement, *, reserves: bool) -> Candidate:
    return advertised_candidate(
        each.element, each.attributes, reserves=reserves, observed_at=each.advertised_at
    )


class SnapshotReader:
    """Reads the grid snapshot from the database and caches its parts. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._candidates: tuple[Candidate, ...] = ()
        self._shut: Mapping[CeId, str] = {}
        self._knowledge = Knowledge()
        self._placed_since: Mapping[CeId, int] = {}
        self._waiting: Mapping[CeId, Sequence[float]] = {}
        self._looked_at = self._learned_at = float("-inf")

    async def read(self, tx: Transaction, classes: Collection[str]) -> GridSnapshot:
        """Return the grid snapshot: what the broker knows now of the elements where jobs may be placed, and of measured run times.

        Its cached parts are read from the database again if they are too old.

        `classes` are the job classes (`BrokeredJob.job_class`) of which measured run times are included.
        """
        now = self._clock()
        if now - self._looked_at > CANDIDATES_SECONDS:
            await self._look(tx)
            self._looked_at = now
        if now - self._learned_at > KNOWLEDGE_SECONDS:
            self._knowledge = await _learn(tx)
            self._learned_at = now
        runs = await _class_runs(tx, classes)
        return GridSnapshot(
            candidates=self._candidates,
            shut=self._shut,
            knowledge=replace(
                self._knowledge,
                class_runs=runs,
                placed_since=self._placed_since,
                still_waiting=self._waiting,
            ),
            now=await tx.now(),
        )

    async def _look(self, tx: Transaction) -> None:
        reserving = await _reserving(tx)
        fresh = await candidate.fresh(tx)
        self._candidates = tuple(_candidate(each, reserves=each.element.ce_id in reserving) for each in fresh)
        self._placed_since = {each.element.ce_id: each.coming for each in fresh}
        self._waiting = await _still_waiting(tx)
        self._shut = _without_endpoint(fresh) | shut_out(await ce_state.read(tx))


def _without_endpoint(fresh: Iterable[FreshElement]) -> dict[CeId, str]:
    """Return the elements to which no pilot can be sent, each with the reason; none where no pilot submitter plans.

    Else a site could draw all jobs to elements that are not there, until each is held for its failed placements.
    """
    reached = {each.element.ce_id: each.has_endpoint for each in fresh}
    if not any(reached.values()):
        return {}
    return {
        place: f"{'/'.join(place)}: the pilot submitter knows no endpoint of it yet"
        for place, is_reached in reached.items()
        if not is_reached
    }


async def _reserving(tx: Transaction) -> frozenset[CeId]:
    """Return the elements whose sites decide on offers now.

    A site whose services send no heartbeats is left out: an offer to it would cost each job the whole time for decisions.
    """
    alive = await instance.live(tx)
    told = await agreement.reservable(tx)
    return frozenset(each for each in told if reader_of_offers(each.site) in alive)


def reader_of_offers(site: str) -> str:
    """Return the name, as it stands in heartbeats, of the consumer that reads offers to a site."""
    return f"agreement.{offers_consumer(site)}"


async def _still_waiting(tx: Transaction) -> dict[CeId, list[float]]:
    waiting: dict[CeId, list[float]] = defaultdict(list)
    for each in await candidate.waiting(tx, WAITING):
        waiting[each.place].append(each.seconds)
    return waiting


async def _learn(tx: Transaction) -> Knowledge:
    waits: dict[CeId, list[MeasuredWait]] = defaultdict(list)
    for each in await prediction.waits(tx, SAMPLES):
        waits[each.place].append(MeasuredWait(seconds=each.seconds, at=each.at))
    moved: dict[str, dict[str, list[MeasuredTransfer]]] = {"stage_in": {}, "stage_out": {}}
    for one in await prediction.transfers(tx, SAMPLES):
        measured = MeasuredTransfer(size=one.size, seconds=one.seconds, host=one.host)
        moved[one.part].setdefault(one.site, []).append(measured)
    return Knowledge(
        waits=waits,
        runs_there=await prediction.runs_there(tx, SAMPLES),
        arriving=moved["stage_in"],
        leaving=moved["stage_out"],
        corrections={
            (row["site"] or "", row["part"], row["source"]): Correction(
                low=row["quantiles"][0],
                median=row["quantiles"][1],
                high=row["quantiles"][2],
                count=row["count"],
            )
            for row in await prediction.corrections(tx, SAMPLES, UNFELT)
        },
    )


async def _class_runs(tx: Transaction, classes: Collection[str]) -> Mapping[str, Sequence[MeasuredRun]]:
    runs: dict[str, list[MeasuredRun]] = defaultdict(list)
    for each in await prediction.run_times(tx, classes, SAMPLES):
        runs[each.job_class].append(MeasuredRun(place=each.place, seconds=each.seconds))
    return runs
