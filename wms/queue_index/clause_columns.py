"""The verdict of each clause on all queues: a bit for each slot, judged once for each distinct part of requirements.

What one clause says is kept by the value of the resource that it looks at: its site, its tags, ... Clauses over ads look at
the class of the resource's ad.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from wms.classad.expression import Expression
from wms.classad.reduce import could_want
from wms.matching.ads import Seen, Words, job_ad, told
from wms.matching.clauses import OF_JOBS_AD, OF_SITES_AD, Clause
from wms.matching.grouping import Requirements
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.job_expressions import JobExpressions
from wms.queue_index.significant_attributes import AdClass, SignificantAttributes
from wms.queue_index.site_expressions import SiteExpressions
from wms.site import Resource, folded, offered_tags

Mask: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint8]

_KEPT_VERDICTS = 4096
LEVELS = 256
"""A resource tells so many ranks of jobs apart; what is below the last of them, counted from the highest, is one."""

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
    "node": lambda r: r.unfit,
}
"""By the clause's name, what it looks at of a resource; of a clause that is not here all."""


_NAMED = {
    "pilot type", "site", "banned site", "grid CE", "platform", "job type", "banned job type", "tags", "required tags",
}  # fmt: skip
"""These look for names, and case means nothing to them."""
_MEMBERSHIP = {"site", "banned site", "grid CE"}
"""These look for one value in a list of names, so that all lists without it are alike but for the empty one."""
_OTHERS = ("\0",)
_OVERLAP: dict[str, Callable[[Resource], tuple[str, ...]]] = {
    "platform": lambda r: r.platforms,
    "job type": lambda r: r.job_types,
}
"""These look for a name that two sets have in common; a set without any is not looked at."""


def _whole(resource: Resource) -> Hashable:
    return resource


class Verdicts:
    """What one clause says of the queues for one value of a resource: a bit for each slot.

    `judge` tells of the parts from one on whether the clause holds for them, a byte each.
    """

    __slots__ = ("_by_part", "_judge", "bits", "judged", "parts")

    def __init__(self, judge: Callable[[int], bytes]) -> None:
        self._judge = judge
        self._by_part = bytearray()
        self.parts = 0
        self.judged = 0
        self.bits: Bits | None = None
        """None while all fit."""

    def follow(self, parts: int, numbers: GrowableArray) -> None:
        """Judge what came since the last time."""
        by_part = self._by_part
        by_part += self._judge(self.parts)
        self.parts = parts
        if self.bits is not None or 0 in by_part:
            known = self.judged & ~7 if self.bits is not None else 0
            fresh = np.frombuffer(bytes(by_part), dtype=np.uint8)[numbers.values[known:]]
            packed = np.packbits(fresh, bitorder="little")
            self.bits = packed if self.bits is None else np.concatenate([self.bits[: known >> 3], packed])
        self.judged = numbers.length


class ClauseColumn:
    """One clause over all queues: the distinct parts it looks at, and which of them each queue has."""

    def __init__(self, clause: Clause) -> None:
        self.clause = clause
        self.parts: list[Hashable] = []
        self.numbers = GrowableArray(np.int32)
        self._numbers: dict[Hashable, int] = {}
        self._compared: list[Any] = []
        """The parts as names are compared, of clauses that look for names."""
        self._looks_at = _LOOKS_AT.get(clause.name, _whole)
        self._verdicts: dict[Hashable, Verdicts] = {}

    def append(self, requirements: Requirements) -> None:
        """Add the next queue."""
        part = self.clause.part(requirements)
        number = self._numbers.setdefault(part, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
            self._learn(part)
        self.numbers.append(number)

    def bits(self, resource: Resource, _: AdClass | None, /) -> Bits | None:
        """Return by slot, a bit each, which queues fit a resource by this clause; None when all do."""
        return self._kept(self._looks_at(resource), partial(self._judge, resource))

    def _learn(self, part: Any) -> None:
        """Take in a part that is new."""
        self._compared.append(folded(part) if self.clause.name in _NAMED else part)

    def _kept(self, value: Hashable, judge: Callable[[int], bytes]) -> Bits | None:
        verdicts = self._verdicts.get(value)
        if verdicts is None:
            if len(self._verdicts) >= _KEPT_VERDICTS:
                self._verdicts.clear()
            verdicts = self._verdicts[value] = Verdicts(judge)
        if verdicts.parts < len(self.parts) or verdicts.judged < self.numbers.length:
            verdicts.follow(len(self.parts), self.numbers)
        return verdicts.bits

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
    """The requirements of jobs, over the faces of resources."""

    def __init__(self, clause: Clause, faces: SignificantAttributes) -> None:
        super().__init__(clause)
        self._faces = faces
        self._wishes = JobExpressions()

    @property
    def evaluated(self) -> int:
        """Pairs of an expression and what it saw, so far."""
        return self._wishes.evaluated

    def _learn(self, part: Any) -> None:
        names = self._wishes.append(part)
        if part is not None:
            self._faces.look(names)

    def bits(self, _: Resource, face: AdClass | None, /) -> Bits | None:
        """Return by slot which queues' requirements are true; None when all are."""
        return None if face is None else self._kept(face.number, partial(self._judge_face, face))

    def _judge_face(self, face: AdClass, start: int) -> bytes:
        return self._wishes.verdicts(face, start).tobytes() if start < len(self.parts) else b""


class Ranked:
    """How well a resource likes the jobs of queues: by slot a level, and the bits of the queues of each."""

    __slots__ = ("_bits", "_levels", "_of_slot", "judged")

    def __init__(self) -> None:
        self.judged = 0
        self._levels = 0
        self._of_slot = np.empty(0, dtype=np.intp)
        self._bits: dict[int, Bits] = {}

    def judge(self, ranks: NDArray[np.float64]) -> None:
        """Take in the ranks of the queues by slot."""
        values, self._of_slot = np.unique(ranks, return_inverse=True)
        self._levels = len(values)
        self._bits.clear()
        self.judged = len(ranks)

    def among(self, fit: Bits) -> list[bytes]:
        """Return of these queues those of each level, the best first; what is below the last that is told apart is one."""
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
    """The requirements of resources' ads, over the jobs of queues; and how well they like these."""

    def __init__(self, clause: Clause) -> None:
        super().__init__(clause)
        self._demands = SiteExpressions(self.parts)
        self._ranked: dict[str, Ranked] = {}
        self._possible: dict[tuple[str, Seen], bool] = {}
        """What ads could require, over what jobs tell to who looks."""

    @property
    def evaluated(self) -> int:
        """Pairs of an expression and what it saw, so far."""
        return self._demands.evaluated

    def bits(self, _: Resource, face: AdClass | None, /) -> Bits | None:
        """Return by slot which queues a resource wants; None when all."""
        if face is None or face.requirements is None:
            return None
        left = face.open_requirements
        if left is not None:
            return self._kept((face.requirements.text, left.text), partial(self._judge_open, face, left))
        return self._kept(face.requirements.text, partial(self._judge_face, face, face.requirements))

    def levels(self, face: AdClass, rank: Expression, fit: Bits) -> list[bytes]:
        """Return the bits of the queues that fit and are liked alike, the best first; nothing where all are."""
        ranked = self._ranked.get(rank.text)
        if ranked is None:
            if len(self._ranked) >= _KEPT_VERDICTS:
                self._ranked.clear()
            ranked = self._ranked[rank.text] = Ranked()
        if ranked.judged < self.numbers.length:
            ranked.judge(self._demands.ranks(rank, face.ad)[self.numbers.values])
        return ranked.among(fit)

    def _judge_open(self, face: AdClass, left: Expression, start: int) -> bytes:
        """Judge what the ad requires as it is, and where that is not so, as it could be."""
        assert face.requirements is not None
        met = self._judge_face(face, face.requirements, start)
        parts = cast("list[Words]", self.parts[start:])
        return bytes(each or self._could(left, part) for each, part in zip(met, parts, strict=True))

    def _could(self, left: Expression, job: Words) -> bool:
        key = left.text, told(job, left.other)
        found = self._possible.get(key)
        if found is None:
            if len(self._possible) >= _KEPT_VERDICTS:
                self._possible.clear()
            found = self._possible[key] = could_want(left, job_ad(job, left.other))
        return found

    def _judge_face(self, face: AdClass, requirements: Expression, start: int) -> bytes:
        if start == len(self.parts):
            return b""
        return self._demands.verdicts(requirements, face.ad, start).tobytes()


def column_of(clause: Clause, faces: SignificantAttributes) -> ClauseColumn:
    """Return an empty column of a clause."""
    if clause.name == OF_JOBS_AD:
        return JobExpressionColumn(clause, faces)
    return SiteExpressionColumn(clause) if clause.name == OF_SITES_AD else ClauseColumn(clause)
