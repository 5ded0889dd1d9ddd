"""Which of many queues fit a resource: each clause judged once for each distinct part, the verdicts gathered over the queues.

Queues stand in slots 0, 1, 2, ... in the order they came. A resource description is judged when first seen and its view is
kept; a view looked at again judges only the queues that came since. Thousands of queues with a few hundred distinct site
lists, tags and owners cost a few hundred Python calls and a dozen array look-ups.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wms.site import Resource
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.selection import CLAUSES, CPU_TIME, Clause

Slots = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Growing:
    """An array that is appended to; `values` is what is there now."""

    __slots__ = ("_room", "length")

    def __init__(self, dtype: type[np.generic]) -> None:
        self._room: NDArray[Any] = np.zeros(64, dtype=dtype)
        self.length = 0

    def append(self, value: Any) -> None:
        """Add a value at the end."""
        if self.length == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self.length] = value
        self.length += 1

    @property
    def values(self) -> NDArray[Any]:
        """The values so far; writable, valid until the next append."""
        return self._room[: self.length]


class Column:
    """One clause over all queues: the distinct parts it looks at, and which of them each queue has."""

    __slots__ = ("_numbers", "clause", "numbers", "parts")

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.parts: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self.numbers = Growing(np.int32)

    def append(self, requirements: Requirements) -> None:
        """Add the next queue."""
        part = self.clause.part(requirements)
        number = self._numbers.setdefault(part, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        self.numbers.append(number)

    def verdicts(self, resource: Resource, *, start: int = 0) -> Mask:
        """Judge the distinct parts from the `start`-th on."""
        holds = self.clause.holds
        return np.fromiter((holds(part, resource) for part in self.parts[start:]), dtype=np.bool_)


class View:
    """The queues that one resource description fits, by CPU segment. The CPU time itself is no part of it."""

    __slots__ = ("_verdicts", "by_segment", "judged", "resource", "segments", "tables")

    def __init__(self, resource: Resource, columns: int) -> None:
        self.resource = resource
        self.judged = 0
        self.by_segment: dict[int, Slots] = {}
        self.segments: list[int] = []
        """Highest first."""
        self.tables: dict[int, Any] = {}
        """What the index keeps for a segment."""
        self._verdicts: list[Mask] = [np.empty(0, dtype=np.bool_)] * columns

    def judge(self, columns: list[Column], segments: NDArray[np.int64]) -> None:
        """Judge the queues that came since the last time."""
        fit = np.ones(len(segments) - self.judged, dtype=np.bool_)
        for number, column in enumerate(columns):
            known = self._verdicts[number]
            if len(known) < len(column.parts):
                new = column.verdicts(self.resource, start=len(known))
                known = self._verdicts[number] = np.concatenate([known, new])
            fit &= known[column.numbers.values[self.judged :]]
        self._sort_in(np.flatnonzero(fit) + self.judged, segments)
        self.judged = len(segments)

    def _sort_in(self, slots: NDArray[np.intp], segments: NDArray[np.int64]) -> None:
        of_slots = segments[slots]
        for segment in np.unique(of_slots).tolist():
            here = slots[of_slots == segment].astype(np.int32)
            before = self.by_segment.get(segment)
            self.by_segment[segment] = here if before is None else np.concatenate([before, here])
            self.tables.pop(segment, None)
        self.segments = sorted(self.by_segment, reverse=True)


class ClauseCount(Struct, frozen=True, kw_only=True):
    """Queues that failed at a clause before any other, the jobs in them, and one of the cases in words."""

    clause: str
    queues: int
    jobs: int
    example: str


class NoMatch(Struct, frozen=True, kw_only=True):
    """Why a resource got nothing: a refusal, or how many queues failed at which clause first, most jobs first."""

    refusal: str = ""
    waiting_queues: int = 0
    waiting_jobs: int = 0
    fitting_queues: int = 0
    failed: tuple[ClauseCount, ...] = ()

    def text(self) -> str:
        """Return it in words: at most one sentence a clause."""
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


class Fitting:
    """All queues' requirements by slot, and the views of the resources seen lately.

    `cached` bounds the views; the one unused for longest goes first.
    """

    def __init__(self, *, cached: int) -> None:
        self._cached = cached
        self._columns = [Column(clause) for clause in CLAUSES]
        self._segments = Growing(np.int64)
        self._memories: list[int] = [0]
        self._views: dict[Hashable, View] = {}

    def append(self, requirements: Requirements) -> None:
        """Add the queue of the next slot."""
        for column in self._columns:
            column.append(requirements)
        self._segments.append(requirements.cpu_segment)
        memory = requirements.min_ram_mb
        if self._memories[bisect_right(self._memories, memory) - 1] != memory:
            insort(self._memories, memory)

    def view(self, resource: Resource) -> View:
        """Return the up-to-date view of a resource; the caller has checked that it is no refusal."""
        # Free memory is seldom twice the same, so it counts only as the largest demand that it meets.
        memory = self._memories[max(0, bisect_right(self._memories, resource.memory_mb) - 1)]
        signature = _signature(resource, memory)
        view = self._views.pop(signature, None)
        if view is None:
            view = View(replace(resource, memory_mb=memory, cpu_time=0), len(self._columns))
            if len(self._views) >= self._cached:
                del self._views[next(iter(self._views))]
        self._views[signature] = view
        if view.judged < self._segments.length:
            view.judge(self._columns, self._segments.values)
        return view

    def failures(
        self,
        resource: Resource,
        jobs: NDArray[np.int64],
        closed: Mask | None,
        limit: Callable[[Resource, int], str],
    ) -> list[ClauseCount]:
        """Return, clause by clause, how many of the queues with jobs failed there first.

        `closed` are the slots kept back where the resource is, and `limit` says of one by what.
        """
        left = jobs > 0
        counts = []
        for column in self._columns:
            numbers = column.numbers.values
            failed = left & ~column.verdicts(resource)[numbers]
            if failed.any():
                part = column.parts[numbers[int(failed.argmax())]]
                example = column.clause.detail(part, resource)
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


def _signature(resource: Resource, memory: int) -> Hashable:
    """All that the clauses look at, but for the CPU time."""
    return (
        resource.site, resource.grid_ce, resource.setup, resource.vo, resource.pilot_type, memory,
        resource.processors, resource.tags, resource.required_tags, resource.platforms, resource.job_types,
        resource.banned_job_types, resource.generic, resource.owner, resource.owner_group, resource.job_sharing,
    )  # fmt: skip
