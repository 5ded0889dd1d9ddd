"""Which of many queues fit a resource: each clause judged once for each distinct part, the verdicts gathered over the queues.

Queues stand in slots 0, 1, 2, ... in the order they came. What one clause says of all queues is kept as a bit for each slot
by the value of the resource that it looks at (its site, its tags, ...), so a resource never seen before costs a few "and"s of
such bits, and one that has come since a few more verdicts. Resources that differ only in what no queue mentions share a view.
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wms.site import Resource, offered_processor_tags
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.growing import Growing
from wms.taskqueue.mentioned import Mentioned
from wms.taskqueue.pool import Market, Pools, Sight
from wms.taskqueue.selection import CLAUSES, CPU_TIME, Clause, refusal

Mask = NDArray[np.bool_]
Bits = NDArray[np.uint8]

_KEPT_VERDICTS = 4096
_KEPT_NAMES = 65_536
_REFUSED = -1

_LOOKS_AT: dict[str, Callable[[Resource], Hashable]] = {
    "setup": lambda r: r.setup,
    "vo": lambda r: r.vo,
    "owner": lambda r: r.generic or (r.owner_group, r.owner, r.job_sharing),
    "pilot type": lambda r: r.pilot_type,
    "site": lambda r: r.site,
    "banned site": lambda r: r.site,
    "grid CE": lambda r: r.grid_ce,
    "platform": lambda r: r.platforms,
    "job type": lambda r: r.job_types,
    "banned job type": lambda r: r.banned_job_types,
    "tags": lambda r: (r.tags, r.processors),
    "required tags": lambda r: r.required_tags,
    "memory": lambda r: r.memory_mb,
    "node": lambda r: r.unfit,
}
"""By the clause's name, what it looks at of a resource; of a clause that is not here all."""


_MEMBERSHIP = {"pilot type", "site", "banned site", "grid CE"}
"""These look for one value in a list of names, so that all lists without it are alike but for the empty one."""
_OTHERS = ("\0",)


def _whole(resource: Resource) -> Hashable:
    return resource


class Verdicts:
    """What one clause says of the queues for one value of a resource: a bit for each slot."""

    __slots__ = ("_by_part", "_clause", "_resource", "bits", "judged", "parts")

    def __init__(self, clause: Clause, resource: Resource) -> None:
        self._clause = clause
        self._resource = resource
        self._by_part = bytearray()
        self.parts = 0
        self.judged = 0
        self.bits: Bits | None = None
        """None while all fit."""

    def follow(self, parts: list[Any], numbers: Growing) -> None:
        """Judge what came since the last time."""
        by_part = self._by_part
        by_part += self._judge(parts, self.parts)
        self.parts = len(parts)
        if self.bits is not None or 0 in by_part:
            known = self.judged & ~7 if self.bits is not None else 0
            fresh = np.frombuffer(bytes(by_part), dtype=np.uint8)[numbers.values[known:]]
            packed = np.packbits(fresh, bitorder="little")
            self.bits = packed if self.bits is None else np.concatenate([self.bits[: known >> 3], packed])
        self.judged = numbers.length

    def _judge(self, parts: list[Any], start: int) -> bytes:
        holds, resource = self._clause.holds, self._resource
        if self._clause.name == "tags":
            offered = offered_processor_tags(resource.processors).union(resource.tags)
            return bytes(map(offered.issuperset, parts[start:]))
        if self._clause.name not in _MEMBERSHIP:
            return bytes(holds(part, resource) for part in parts[start:])
        # Thousands of lists of sites, and few of them name this one.
        naming_none, naming_others = holds((), resource), holds(_OTHERS, resource)
        value: Any = _LOOKS_AT[self._clause.name](resource)
        return bytes(
            holds(part, resource) if value in part else naming_others if part else naming_none
            for part in parts[start:]
        )


class Column:
    """One clause over all queues: the distinct parts it looks at, and which of them each queue has."""

    __slots__ = ("_looks_at", "_numbers", "_verdicts", "clause", "numbers", "parts")

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.parts: list[Hashable] = []
        self.numbers = Growing(np.int32)
        self._numbers: dict[Hashable, int] = {}
        self._looks_at = _LOOKS_AT.get(clause.name, _whole)
        self._verdicts: dict[Hashable, Verdicts] = {}

    def append(self, requirements: Requirements) -> None:
        """Add the next queue."""
        part = self.clause.part(requirements)
        number = self._numbers.setdefault(part, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        self.numbers.append(number)

    def bits(self, resource: Resource) -> Bits | None:
        """Return by slot, a bit each, which queues fit a resource by this clause; None when all do."""
        value = self._looks_at(resource)
        verdicts = self._verdicts.get(value)
        if verdicts is None:
            if len(self._verdicts) >= _KEPT_VERDICTS:
                self._verdicts.clear()
            verdicts = self._verdicts[value] = Verdicts(self.clause, resource)
        if verdicts.parts < len(self.parts) or verdicts.judged < self.numbers.length:
            verdicts.follow(self.parts, self.numbers)
        return verdicts.bits

    def judged(self, resource: Resource) -> Mask:
        """Judge the distinct parts."""
        holds = self.clause.holds
        return np.fromiter((holds(part, resource) for part in self.parts), dtype=np.bool_)


class View:
    """The queues that one kind of resource fits, a bit for each slot, and what it sees of the pools that it draws from."""

    __slots__ = ("_market", "_sights", "fit", "judged", "resource")

    def __init__(self, resource: Resource, market: Market) -> None:
        self.resource = resource
        self.fit = b""
        self.judged = 0
        self._market = market
        self._sights: list[Sight] = []

    def judge(self, columns: list[Column], slots: int) -> None:
        """Judge the queues that came since the last time."""
        gathered = [bits for column in columns if (bits := column.bits(self.resource)) is not None]
        if gathered:
            self.fit = np.bitwise_and.reduce(gathered).tobytes()
        else:
            self.fit = b"\xff" * ((slots + 7) >> 3)
        self.judged = slots

    def sights(self) -> list[Sight]:
        """Return what it sees of its pools, highest CPU segment first."""
        pools = self._market.pools
        if len(pools) != len(self._sights):
            known = {sight.pool: sight for sight in self._sights}
            self._sights = [known.get(pool) or Sight(pool) for pool in pools]
        return self._sights


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

    `cached` bounds the views; the oldest goes first.
    """

    def __init__(self, pools: Pools, *, cached: int) -> None:
        self._cached = cached
        self._pools = pools
        self._columns = [Column(clause) for clause in CLAUSES]
        self._segments = Growing(np.int64)
        self._mentioned = Mentioned()
        self._version = 0
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[Hashable, int] = {}
        self._lately: dict[Resource, int] = {}
        """Of resources that come again as they are, whose hash is known."""
        self._views: dict[int, View] = {}

    def append(self, requirements: Requirements) -> None:
        """Add the queue of the next slot."""
        for column in self._columns:
            column.append(requirements)
        self._segments.append(requirements.cpu_segment)
        self._mentioned.add(requirements)

    def view(self, resource: Resource) -> View | None:
        """Return the up-to-date view of a resource; None when its description is refused."""
        if self._version != self._mentioned.version or len(self._names) > _KEPT_NAMES:
            self._forget()
        number = self._lately.get(resource)
        if number is None:
            number = self._lately[resource] = self._number_of_name(resource)
        if number == _REFUSED:
            return None
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = self._new_view(resource)
        if view.judged < self._segments.length:
            view.judge(self._columns, self._segments.length)
        return view

    def _number_of_name(self, resource: Resource) -> int:
        if len(self._lately) > _KEPT_NAMES:
            self._lately.clear()
        name = _name(resource, self._mentioned.memory(resource.memory_mb))
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = self._number(resource)
        return number

    def _number(self, resource: Resource) -> int:
        """Number the kinds of resource, for a number is looked up in less time than a kind."""
        if refusal(resource):
            return _REFUSED
        return self._numbers.setdefault(self._mentioned.kind(resource), len(self._numbers))

    def _new_view(self, resource: Resource) -> View:
        if len(self._views) >= self._cached:
            del self._views[next(iter(self._views))]
        return View(resource, self._pools.market(resource))

    def _forget(self) -> None:
        self._version = self._mentioned.version
        self._numbers.clear()
        self._names.clear()
        self._lately.clear()
        self._views.clear()

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
            failed = left & ~column.judged(resource)[numbers]
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


def _name(resource: Resource, memory: int) -> Hashable:
    """All that the clauses look at, but for the CPU time."""
    return (
        resource.site, resource.grid_ce, resource.setup, resource.vo, resource.pilot_type, memory,
        resource.processors, resource.tags, resource.required_tags, resource.platforms, resource.job_types,
        resource.banned_job_types, resource.generic, resource.owner, resource.owner_group, resource.job_sharing,
    )  # fmt: skip
