"""Which queues fit which resources: the verdicts of all clauses combined, and cached by kind of resource.

Queues have slots 0, 1, 2, ... in the order they were added. A clause's verdict on all queues is cached as one bit for each slot,
by the value of the resource that it reads (its site, its tags, ...). So a new resource costs a few "and"s of such bits, and a new
queue a few more verdicts. Resources share a view if they differ only in values that no queue mentions.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wms.bounded_cache import BoundedCache
from wms.classad.expression import Expression
from wms.matching.clauses import CLAUSES, CPU_TIME, refusal
from wms.matching.grouping import Requirements
from wms.queue_index.clause_columns import (
    ClauseColumn,
    JobExpressionColumn,
    Mask,
    SiteExpressionColumn,
    column_of,
)
from wms.queue_index.effort import Effort
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.named_values import NamedValues
from wms.queue_index.queue_draw import QueueDraw
from wms.queue_index.queue_pools import Pools, ResourcePools
from wms.queue_index.significant_attributes import AdClass, Place, SignificantAttributes
from wms.site import Resource

_KEPT_NAMES = 65_536
_REFUSED = -1


class FittingQueues:
    """The queues that fit one kind of resource, one bit for each slot (row number), and the pools from which the resource draws."""

    __slots__ = (
        "_ad_class",
        "_draws",
        "_levels",
        "_pools",
        "_resource_pools",
        "fit",
        "is_whole",
        "judged",
        "resource",
    )

    def __init__(self, resource: Resource, ad_class: AdClass | None, resource_pools: ResourcePools) -> None:
        self.resource = resource
        self._ad_class = ad_class
        self._levels: list[bytes] = []
        """The fitting queues split by the resource's Rank expression, one bit mask per level, best first; empty if all rank alike."""
        self._pools = 0
        self.fit = b""
        self.judged = 0
        self.is_whole = True
        """Whether all queues are decided; those that are not do not fit yet."""
        self._resource_pools = resource_pools
        self._draws: list[QueueDraw] = []

    def judge(self, columns: list[ClauseColumn], slots: int) -> None:
        """Compute anew which queues fit, from the verdicts of the clauses in `columns`; `slots` is the number of queues."""
        ad_class = self._ad_class
        gathered = [bits for column in columns if (bits := column.bits(self.resource, ad_class)) is not None]
        if gathered:
            self.fit = np.bitwise_and.reduce(gathered).tobytes()
        else:
            self.fit = b"\xff" * ((slots + 7) >> 3)
        self.judged = slots
        if not self.is_whole:
            # The draws so far know which pools are empty to the queues that fitted before.
            self._draws, self._pools = [], 0
        if ad_class is not None and ad_class.rank is not None:
            self._rank(columns, ad_class, ad_class.rank)
        self.is_whole = all(column.undecided is None for column in columns)

    def _rank(self, columns: list[ClauseColumn], ad_class: AdClass, rank: Expression) -> None:
        column = next(each for each in columns if isinstance(each, SiteExpressionColumn))
        self._levels = column.levels(ad_class, rank, np.frombuffer(self.fit, dtype=np.uint8))
        self._pools = 0

    def draws(self) -> list[QueueDraw]:
        """Return the draws that the resource tries in turn.

        They are in descending order of CPU segment and, within a segment, of the resource's rank.
        """
        pools = self._resource_pools.pools
        if len(pools) != self._pools:
            self._pools = len(pools)
            if self._levels:
                self._draws = [QueueDraw(pool, level) for pool in pools for level in self._levels]
            else:
                known = {draw.pool: draw for draw in self._draws}
                self._draws = [known.get(pool) or QueueDraw(pool) for pool in pools]
        return self._draws


class ClauseCount(Struct, frozen=True, kw_only=True):
    """How many queues, and jobs in them, fail first at one clause (rule of the fit), with one example as text."""

    clause: str
    queues: int
    jobs: int
    example: str


class NoFit(Struct, frozen=True, kw_only=True):
    """Why a resource gets no job: its description is refused, or which clauses fail for how many queues, most jobs first."""

    refusal: str = ""
    waiting_queues: int = 0
    waiting_jobs: int = 0
    fitting_queues: int = 0
    failed: tuple[ClauseCount, ...] = ()

    def for_pilots(self) -> str:
        """Return the reason as a text for pilots, which names neither other users nor the number of waiting jobs."""
        if self.refusal or not self.waiting_jobs:
            return self.text()
        if self.fitting_queues:
            return "what fits is taken or held back by limits"
        return f"nothing that waits fits: {', '.join(count.clause for count in self.failed)}"

    def text(self) -> str:
        """Return why the resource gets no job as a text for operators, with at most one sentence a clause."""
        if self.refusal:
            return f"refused: {self.refusal}"
        if not self.waiting_jobs:
            return "no job waits"
        if self.fitting_queues:
            return f"{self.fitting_queues} of {self.waiting_queues} queues fit"
        head = f"none of the {self.waiting_jobs} jobs in {self.waiting_queues} queues fits: "
        return head + "; ".join(
            f"{count.clause} ({count.jobs} jobs in {count.queues} queues, such as: {count.example[:200]})"
            for count in self.failed
        )


class FitCache:
    """The requirements of all queues, and cached views of the resources that asked recently.

    A view says which queues fit a resource. `cached` is the most views that are kept. `effort` bounds how much is evaluated for new ones.
    """

    def __init__(
        self, pools: Pools, ad_classes: SignificantAttributes, *, cached: int, effort: Effort | None = None
    ) -> None:
        self._pools = pools
        self._ad_classes = ad_classes
        self._columns = [column_of(clause, self._ad_classes, effort) for clause in CLAUSES]
        self._segments = GrowableArray(np.int64)
        self._mentioned = NamedValues()
        self._version = self._ad_classes_version = 0
        """The versions, of the values that queues name and of the classes of ads, for which the caches are valid."""
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[Hashable, int] = {}
        self._lately: dict[Resource, int] = {}
        """The number of its kind for each resource that asked lately. Resources that ask again unchanged are found here."""
        self._views = BoundedCache[int, FittingQueues](cached)
        self._at_place: dict[Place, list[Resource]] = {}
        """The resources in `_lately` by their computing element, if the element's ad is stored."""

    @property
    def evaluated(self) -> int:
        """How many evaluations were made so far: one for each expression and each set of ad values that it read."""
        return sum(
            each.evaluated
            for each in self._columns
            if isinstance(each, JobExpressionColumn | SiteExpressionColumn)
        )

    def append(self, requirements: Requirements) -> None:
        """Add a task queue with these requirements; its slot (row number) is the number of queues added before."""
        for column in self._columns:
            column.append(requirements)
        self._segments.append(requirements.cpu_segment)
        self._mentioned.add(requirements)

    def containers(self) -> Iterator[Any]:
        """Yield the lists and dicts with entries for many queues, which may be freed in parts when the cache is no longer used."""
        for column in self._columns:
            yield from column.containers()

    def view(self, resource: Resource) -> FittingQueues | None:
        """Return the up-to-date view of a resource; None if the resource's description contradicts itself."""
        if (
            self._ad_classes_version != self._ad_classes.version
            or self._version != self._mentioned.version
            or len(self._names) > _KEPT_NAMES
        ):
            self._forget()
        number = self._lately.get(resource)
        if number is None:
            number = self._lately[resource] = self._number_of_name(resource)
        if number == _REFUSED:
            return None
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = self._new_view(resource)
        if view.judged < self._segments.length or not view.is_whole:
            view.judge(self._columns, self._segments.length)
        return view

    def advertise(self, place: Place, ad: str) -> None:
        """Set the ad of a computing element, as canonical text, from the next draw on; an empty text removes it."""
        known = self._ad_classes.knows(place)
        if self._ad_classes.advertise(place, ad):
            if known:
                for resource in self._at_place.pop(place, ()):
                    self._lately.pop(resource, None)
            else:
                self._lately.clear()
                self._at_place.clear()

    def seen(self, resource: Resource) -> Resource:
        """Return a resource completed by the stored ad of its computing element; unchanged if none is stored."""
        return self._ad_classes.seen(resource)

    def _number_of_name(self, resource: Resource) -> int:
        if len(self._lately) > _KEPT_NAMES:
            self._lately.clear()
            self._at_place.clear()
        place = resource.site, resource.grid_ce
        if self._ad_classes.knows(place):
            self._at_place.setdefault(place, []).append(resource)
        ad_class = self._ad_classes.number(resource)
        name = (ad_class, *_name(resource, self._mentioned))
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = self._number(resource, ad_class)
        return number

    def _number(self, resource: Resource, ad_class: int) -> int:
        """Return the number of a resource's kind, by which views are cached. `ad_class` is the number of its ad's class.

        The number is that for refused resources if the description contradicts itself.
        """
        if refusal(resource):
            return _REFUSED
        return self._numbers.setdefault((ad_class, self._mentioned.kind(resource)), len(self._numbers))

    def _new_view(self, resource: Resource) -> FittingQueues:
        seen = self._ad_classes.seen(resource)
        return FittingQueues(seen, self._ad_classes.of(seen), self._pools.resource_pools(resource))

    def _forget(self) -> None:
        self._version, self._ad_classes_version = self._mentioned.version, self._ad_classes.version
        self._numbers.clear()
        self._names.clear()
        self._lately.clear()
        self._at_place.clear()
        self._views.clear()

    def failures(
        self,
        resource: Resource,
        jobs: NDArray[np.int64],
        closed: Mask | None,
        limit: Callable[[Resource, int], str],
        *,
        with_examples: bool = True,
    ) -> list[ClauseCount]:
        """Return, for each clause that some queues with jobs failed first, the count of these queues and their jobs.

        `jobs` holds the number of jobs by slot. `closed` marks the slots that limits keep back at the resource's place, and
        `limit` returns the reason for one slot. Examples take as long as parsing the requirements, so `with_examples` may turn
        them off.
        """
        left = jobs > 0
        counts = []
        resource = self._ad_classes.seen(resource)
        ad_class = self._ad_classes.of(resource)
        for column in self._columns:
            bits = column.bits(resource, ad_class)
            if bits is None:
                continue
            failed = left & ~np.unpackbits(bits, count=len(left), bitorder="little").view(np.bool_)
            if failed.any():
                part = column.parts[column.numbers.values[int(failed.argmax())]]
                example = column.clause.detail(part, resource) if with_examples else ""
                counts.append(_count(column.clause.name, failed, jobs, example))
                left &= ~failed
        short = left & (self._segments.values > resource.cpu_time)
        if short.any():
            least = int(self._segments.values[short].min())
            counts.append(_count(CPU_TIME.name, short, jobs, CPU_TIME.detail(least, resource)))
            left &= ~short
        if closed is not None and (kept := left & closed).any():
            counts.append(_count("limit", kept, jobs, limit(resource, int(kept.argmax()))))
        return counts


def _count(clause: str, failed: Mask, jobs: NDArray[np.int64], example: str) -> ClauseCount:
    return ClauseCount(
        clause=clause,
        queues=int(np.count_nonzero(failed)),
        jobs=int(jobs[failed].sum()),
        example=example,
    )


def _name(resource: Resource, mentioned: NamedValues) -> tuple[Hashable, ...]:
    """Return all values of a resource, except for the CPU time, that the clauses read."""
    return (
        resource.site, resource.grid_ce, resource.setup, resource.vo, resource.pilot_type,
        mentioned.memory(resource.memory_mb), mentioned.disk(resource.disk_mb),
        resource.processors, resource.tags, resource.required_tags, resource.platforms, resource.job_types,
        resource.banned_job_types, resource.generic, resource.owner, resource.owner_group, resource.job_sharing,
    )  # fmt: skip
