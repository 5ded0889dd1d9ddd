"""The verdicts of each clause (rule of the fit) on all queues: one bit a queue, judged once for each distinct condition.

A queue's slot is its row number in the index, by which bits are ordered. A clause's verdicts are cached by the value of the
resource that it reads, such as its site or its tags. For clauses over ads the cache key is the class of the resource's ad.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from wms.bounded_cache import BoundedCache
from wms.classad.expression import Expression
from wms.classad.reduce import could_want
from wms.matching.ads import JobAttributes, Seen, job_ad, job_values
from wms.matching.clauses import OF_JOBS_AD, OF_SITES_AD, Clause
from wms.matching.grouping import Requirements
from wms.queue_index.effort import STEPS_A_CHARACTER, Effort, steps
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.job_expressions import JobExpressions
from wms.queue_index.significant_attributes import AdClass, SignificantAttributes
from wms.queue_index.site_expressions import SiteExpressions
from wms.site import Resource, folded, offered_tags

Mask: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint8]

_KEPT_VERDICTS = 4096
LEVELS = 256
"""The most levels of rank that a resource distinguishes among queues, from the highest; all lower ranks share the last level."""

_LOOKS_AT: dict[str, Callable[[Resource], Hashable]] = {
    "setup": lambda r: r.setup,
    "vo": lambda r: r.vo,
    "owner": lambda r: r.generic or (r.owner_group, r.owner, r.job_sharing),
    "pilot type": lambda r: (r.generic, r.pilot_type.casefold()),
    "site": lambda r: r.site.casefold(),
    "banned site": lambda r: r.site.casefold(),
    "grid CE": lambda r: r.grid_ce.casefold(),
    "platform": lambda r: r.platforms,
    "job type": lambda r: r.job_types,
    "banned job type": lambda r: r.banned_job_types,
    "tags": lambda r: (r.tags, r.processors),
    "required tags": lambda r: r.required_tags,
    "memory": lambda r: r.memory_mb,
    "disk": lambda r: r.disk_mb,
}
"""By clause name, a getter for the fields of a resource that the clause reads. Clauses not listed read the whole resource."""


_NAMED = {
    "pilot type", "site", "banned site", "grid CE", "platform", "job type", "banned job type", "tags", "required tags",
}  # fmt: skip
"""Clauses that compare names without regard to case."""
_MEMBERSHIP = {"site", "banned site", "grid CE"}
"""Clauses that look up one name of the resource in a list of the queue.

All lists without the name have one verdict, except the empty list.
"""
_OTHERS = ("\0",)
_OVERLAP: dict[str, Callable[[Resource], tuple[str, ...]]] = {
    "platform": lambda r: r.platforms,
    "job type": lambda r: r.job_types,
}
"""Clauses that hold if two sets share a name, with a getter for the resource's set. If a set is empty, the clause holds."""


def _whole(resource: Resource) -> Hashable:
    return resource


class Verdicts:
    """The verdicts of one clause on all queues, for one value of a resource: one bit for each queue's slot (row number)."""

    __slots__ = ("_by_part", "bits", "judged", "parts")

    def __init__(self) -> None:
        self._by_part = bytearray()
        self.parts = 0
        self.judged = 0
        self.bits: Bits | None = None
        """One bit for each slot, 1 if the clause holds; None while it holds for all queues."""

    def follow(self, judge: Callable[[int], bytes], parts: int, numbers: GrowableArray) -> None:
        """Judge conditions that are new since the last call, and set the bits of the queues added since.

        `judge(start)` returns one byte for each distinct condition from number `start` on: 1 if the clause holds. `parts` is the number of
        distinct conditions. `numbers` holds, by slot, the number of each queue's condition.
        """
        by_part = self._by_part
        by_part += judge(self.parts)
        self.parts = parts
        if self.bits is not None or 0 in by_part:
            known = self.judged & ~7 if self.bits is not None else 0
            fresh = np.frombuffer(bytes(by_part), dtype=np.uint8)[numbers.values[known:]]
            packed = np.packbits(fresh, bitorder="little")
            self.bits = packed if self.bits is None else np.concatenate([self.bits[: known >> 3], packed])
        self.judged = numbers.length


class ClauseColumn:
    """One clause over all queues: the distinct parts of requirements that it reads, and which part each queue has."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.parts: list[Hashable] = []
        self.numbers = GrowableArray(np.int32)
        self._numbers: dict[Hashable, int] = {}
        self._compared: list[Any] = []
        """Each distinct part of requirements in `parts`, as it is compared with resources: case-folded if the clause compares names."""
        self._looks_at = _LOOKS_AT.get(clause.name, _whole)
        self._verdicts = BoundedCache[Hashable, Verdicts](_KEPT_VERDICTS)
        self.undecided: Mask | None = None
        """The queues that `bits` left out last, because their requirements are not decided yet; None: there are none."""

    def append(self, requirements: Requirements) -> None:
        """Add a task queue with these requirements; its slot (row number) is the number of queues added before."""
        part = self.clause.part(requirements)
        number = self._numbers.setdefault(part, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
            self._learn(part)
        self.numbers.append(number)

    def bits(self, resource: Resource, _: AdClass | None, /) -> Bits | None:
        """Return the queues that fit a resource by this clause, one bit for each slot; None if all fit."""
        return self._kept(self._looks_at(resource), partial(self._judge, resource))

    def containers(self) -> Iterator[Any]:
        """Yield the lists and dicts with an entry for each distinct part, which may be freed in parts when the column is no longer used."""
        yield from (self._numbers, self._compared, self.parts)

    def _learn(self, part: Any) -> None:
        """Store a part of requirements that no earlier queue has, so that it is judged from now on."""
        self._compared.append(folded(part) if self.clause.name in _NAMED else part)

    def _kept(self, value: Hashable, judge: Callable[[int], bytes]) -> Bits | None:
        self._leave(None, 0)
        verdicts = self._verdicts.get(value)
        if verdicts is None:
            verdicts = self._verdicts[value] = Verdicts()
        if verdicts.parts < len(self.parts) or verdicts.judged < self.numbers.length:
            verdicts.follow(judge, len(self.parts), self.numbers)
        if self.undecided is not None:
            del self._verdicts[value]
        return verdicts.bits

    def _leave(self, undecided: Mask | None, start: int) -> None:
        """Note which of the conditions from number `start` on are not decided yet; None: all are."""
        self.undecided = None
        if undecided is not None:
            of_all = np.zeros(len(self.parts), dtype=np.bool_)
            of_all[start:] = undecided
            self.undecided = of_all[self.numbers.values]

    def _judge(self, resource: Resource, start: int) -> bytes:
        holds, parts, name = self.clause.holds, self._compared[start:], self.clause.name
        offered = offered_tags(resource.tags, resource.processors)
        if name == "tags" and not offered.is_any:
            return bytes(map(offered.tags.issuperset, parts))
        if name in _NAMED and self._looks_at(resource) in ("", ()):
            return bytes([holds((), resource)]) * len(parts)  # what names nothing is not looked at
        if name in _OVERLAP:
            own = frozenset(folded(_OVERLAP[name](resource)))
            return bytes(not part or not own.isdisjoint(part) for part in parts)
        if name not in _MEMBERSHIP:
            return bytes(holds(part, resource) for part in parts)
        # Thousands of lists of sites, most of them long: each is looked at for the one name alone.
        value = self._looks_at(resource)
        of_it, of_others, of_none = (holds(each, resource) for each in ((value,), _OTHERS, ()))
        return bytes(of_it if value in part else of_others if part else of_none for part in parts)


class JobExpressionColumn(ClauseColumn):
    """The clause on jobs' ClassAd requirements, over all task queues. They are evaluated once for each class of equal ads."""

    def __init__(self, clause: Clause, ad_classes: SignificantAttributes, effort: Effort | None) -> None:
        super().__init__(clause)
        self._ad_classes = ad_classes
        self._wishes = JobExpressions(effort)

    @property
    def evaluated(self) -> int:
        """How many evaluations were made so far: one for each expression and each set of values that it read."""
        return self._wishes.evaluated

    def containers(self) -> Iterator[Any]:
        """Yield those of all columns, and those of the expressions."""
        yield from super().containers()
        yield from self._wishes.containers()

    def _learn(self, part: Any) -> None:
        names = self._wishes.append(part)
        if part is not None:
            self._ad_classes.look(names)

    def bits(self, _: Resource, ad_class: AdClass | None, /) -> Bits | None:
        """Return the queues whose ClassAd requirements are true of a class of ads, one bit for each slot; None if all are true.

        The bits of undecided queues are 0. They are judged further at the next call.
        """
        if ad_class is None:
            self.undecided = None
            return None
        return self._kept(ad_class.number, partial(self._judge_ad_class, ad_class))

    def _judge_ad_class(self, ad_class: AdClass, start: int) -> bytes:
        if start == len(self.parts):
            return b""
        met = self._wishes.verdicts(ad_class, start)
        self._leave(self._wishes.undecided, start)
        return met.tobytes()


class Ranked:
    """Ranks of all task queues by one Rank expression of a resource. Queues with equal values are one level."""

    __slots__ = ("_bits", "_levels", "_of_slot", "judged")

    def __init__(self) -> None:
        self.judged = 0
        self._levels = 0
        self._of_slot = np.empty(0, dtype=np.intp)
        self._bits: dict[int, Bits] = {}

    def judge(self, ranks: NDArray[np.float64]) -> None:
        """Set the ranks of all task queues: `ranks` has the value of the Rank expression for each slot (row number)."""
        values, self._of_slot = np.unique(ranks, return_inverse=True)
        self._levels = len(values)
        self._bits.clear()
        self.judged = len(ranks)

    def among(self, fit: Bits) -> list[bytes]:
        """Split the queues in `fit` by rank; return one bit mask per level, best first. An empty list means that all rank alike.

        Ranks below the first `LEVELS` - 1 share the last mask.
        """
        fits = np.unpackbits(fit, count=self.judged, bitorder="little").view(np.bool_)
        there = np.flatnonzero(np.bincount(self._of_slot[fits], minlength=self._levels))[::-1].tolist()
        if len(there) < 2:
            return []
        found = [(fit & self._level(level)).tobytes() for level in there[: LEVELS - 1]]
        if len(there) >= LEVELS:
            rest = fits & (self._of_slot <= there[LEVELS - 1])
            found.append(np.packbits(rest, bitorder="little").tobytes())
        return found

    def _level(self, level: int) -> Bits:
        bits = self._bits.get(level)
        if bits is None:
            bits = self._bits[level] = np.packbits(self._of_slot == level, bitorder="little")
        return bits


class SiteExpressionColumn(ClauseColumn):
    """The clause on requirements in resources' ads, over all queues' jobs, and the ranks that resources give the jobs."""

    def __init__(self, clause: Clause, effort: Effort | None = None) -> None:
        super().__init__(clause)
        self._effort = effort or Effort()
        self._demands = SiteExpressions(self.parts, self._effort)
        self._ranked = BoundedCache[str, Ranked](_KEPT_VERDICTS)
        self._possible = BoundedCache[tuple[str, Seen], bool](_KEPT_VERDICTS)
        """Whether an ad's open requirements could become true, by their text and the job values that they read."""

    @property
    def evaluated(self) -> int:
        """How many evaluations were made so far: one for each expression and each set of values that it read."""
        return self._demands.evaluated

    def bits(self, _: Resource, ad_class: AdClass | None, /) -> Bits | None:
        """Return the queues whose jobs meet the requirements of a resource's ad, one bit for each slot; None if all do.

        The bits of undecided queues are 0. They are judged further at the next call.
        """
        if ad_class is None or ad_class.requirements is None:
            self.undecided = None
            return None
        left = ad_class.open_requirements
        if left is not None:
            return self._kept(
                (ad_class.requirements.text, left.text), partial(self._judge_open, ad_class, left)
            )
        return self._kept(
            ad_class.requirements.text, partial(self._judge_ad_class, ad_class, ad_class.requirements)
        )

    def levels(self, ad_class: AdClass, rank: Expression, fit: Bits) -> list[bytes]:
        """Split the queues in `fit` by the ad's Rank expression; return one bit mask per level, best first. Empty if all rank alike.

        Undecided queues have rank 0 until a later call.
        """
        ranked = self._ranked.get(rank.text)
        if ranked is None:
            ranked = self._ranked[rank.text] = Ranked()
        if ranked.judged < self.numbers.length:
            ranked.judge(self._demands.ranks(rank, ad_class.ad)[self.numbers.values])
            if self._demands.undecided is not None:
                self._leave(self._demands.undecided, 0)
                del self._ranked[rank.text]
        return ranked.among(fit)

    def _judge_open(self, ad_class: AdClass, left: Expression, start: int) -> bytes:
        """Judge the kinds of job from number `start` on. The byte is 1 if the ad's requirements are true of the job or may become true.

        `left` is what remains of the requirements of a pilot not yet sent, once known values are filled in.
        """
        assert ad_class.requirements is not None
        met = self._judge_ad_class(ad_class, ad_class.requirements, start)
        parts = cast("list[JobAttributes]", self.parts[start:])
        looked = steps(left.tree) + STEPS_A_CHARACTER * len(left.text)
        judged = [
            bool(each) or self._could(left, part, looked) for each, part in zip(met, parts, strict=True)
        ]
        self._leave(np.array([each is None for each in judged]) if None in judged else None, start)
        return bytes(bool(each) for each in judged)

    def _could(self, left: Expression, job: JobAttributes, looked: int) -> bool | None:
        """Return whether what is left of requirements may become true of a job. None: the effort lacks, of which it takes `looked`."""
        key = left.text, job_values(job, left.other)
        found = self._possible.get(key)
        if found is None and self._effort.spend(looked):
            found = self._possible[key] = could_want(left, job_ad(job, left.other))
        return found

    def _judge_ad_class(self, ad_class: AdClass, requirements: Expression, start: int) -> bytes:
        if start == len(self.parts):
            return b""
        met = self._demands.verdicts(requirements, ad_class.ad, start)
        self._leave(self._demands.undecided, start)
        return met.tobytes()


def column_of(
    clause: Clause, ad_classes: SignificantAttributes, effort: Effort | None = None
) -> ClauseColumn:
    """Return an empty column for a clause.

    `ad_classes` holds the classes of equal ads, for clauses that evaluate ClassAds. `effort` bounds evaluations.
    """
    if clause.name == OF_JOBS_AD:
        return JobExpressionColumn(clause, ad_classes, effort)
    return SiteExpressionColumn(clause, effort) if clause.name == OF_SITES_AD else ClauseColumn(clause)
