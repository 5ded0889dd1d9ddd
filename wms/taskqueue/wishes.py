"""Expressions over many queues at once: each conjunct, and each requirement of a site, is evaluated once for what it sees.

The requirements of queues are taken apart into conjuncts, of which there are few: `other.GlueCEStateStatus == "Production"` may be
in all of them. A conjunct's verdict is kept by what it sees of an ad, so that ads which differ elsewhere share it. The jobs
of queues are one to a site's expression when they tell the same by the names that it looks at.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import is_truth
from wms.classad.match import satisfied, satisfied_by
from wms.classad.tree import Chain, Literal, Scope, chain, references, split
from wms.taskqueue.ads import Seen, Words, job_ad, told, wish
from wms.taskqueue.faces import Face
from wms.taskqueue.growing import Growing
from wms.taskqueue.wants import Asked, number

Mask = NDArray[np.bool_]

KEPT = 16_384
"""Verdicts of one expression, by what it saw."""


class Conjunct:
    """A term of jobs' requirements, bound to the ads of the jobs, and what it was over what it saw."""

    __slots__ = ("_verdicts", "expression")

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self._verdicts: dict[Seen, bool] = {}

    def over(self, ad: Ad, view: Seen) -> bool:
        """Tell whether it is met by an ad that does not look back; `view` is what it sees there."""
        found = self._verdicts.get(view)
        if found is None:
            found = self._keep(view, satisfied(self.expression, ad))
        return found

    def over_open(self, ad: Ad, view: Seen, job: Words) -> bool:
        """Tell whether it is met by an ad that looks back at the job."""
        open_ = [tree for key in self.expression.other & ad.open if (tree := ad.tree(key)) is not None]
        names = frozenset[str]().union(*(references(tree, Scope.OTHER) for tree in open_))
        key = view, told(job, names)
        found = self._verdicts.get(key)
        if found is None:
            found = self._keep(key, satisfied(self.expression, ad, job_ad(job, names)))
        return found

    def _keep(self, view: Seen, verdict: bool) -> bool:  # noqa: FBT001 - a fact
        if len(self._verdicts) >= KEPT:
            self._verdicts.clear()
        self._verdicts[view] = verdict
        return verdict


class Wishes:
    """The requirements of jobs, taken apart: `looked` are the names that they look at."""

    def __init__(self) -> None:
        self.looked: frozenset[str] = frozenset()
        self._conjuncts: list[Conjunct] = []
        self._numbers: dict[str, int] = {}
        self._terms = Growing(np.int32)
        """The numbers of the conjuncts of all parts, one part behind the other; none is without."""
        self._ends = Growing(np.int64)
        self._parts: list[Asked] = []
        self._true = self._number(Expression.parse("true"))

    def append(self, part: Asked) -> None:
        """Take in the next part."""
        numbers = [self._true] if part is None else _distinct(map(self._number, _terms(wish(*part))))
        for each in numbers:
            self._terms.append(each)
        self._ends.append(self._terms.length)
        self._parts.append(part)

    def verdicts(self, face: Face, start: int) -> Mask:
        """Tell of the parts from the `start`-th on whether they are true of a face's ad."""
        first = int(self._ends.values[start - 1]) if start else 0
        terms = self._terms.values[first:]
        used = np.unique(terms).tolist() if start else range(len(self._conjuncts))
        met = np.ones(len(self._conjuncts), dtype=np.bool_)
        views: dict[frozenset[str], Seen] = {}
        looking: list[int] = []
        for each in used:
            conjunct = self._conjuncts[each]
            names = conjunct.expression.other
            if names not in views:
                views[names] = face.ad.view(names)
            if names.isdisjoint(face.ad.open):
                met[each] = conjunct.over(face.ad, views[names])
            else:
                looking.append(each)
        starts = np.concatenate([[first], self._ends.values[start:-1]]) - first
        found: Mask = np.logical_and.reduceat(met[terms], starts)
        for each in looking:
            places = np.searchsorted(starts, np.flatnonzero(terms == each), side="right") - 1
            found[places] &= self._open_verdicts(self._conjuncts[each], (places + start).tolist(), face.ad)
        return found

    def _open_verdicts(self, conjunct: Conjunct, parts: list[int], ad: Ad) -> list[bool]:
        """Judge a conjunct that looks at what looks back at the job, for each part that has it."""
        view = ad.view(conjunct.expression.other)
        asked = [part for number in parts if (part := self._parts[number]) is not None]
        return [conjunct.over_open(ad, view, job) for _, job in asked]

    def _number(self, expression: Expression) -> int:
        number = self._numbers.setdefault(expression.text, len(self._conjuncts))
        if number == len(self._conjuncts):
            self._conjuncts.append(Conjunct(expression))
            self.looked |= expression.other
        return number


def _terms(bound: Expression) -> list[Expression]:
    """Return the conjuncts, each as an expression that is true where the conjunct counts as true."""
    if not isinstance(bound.tree, Chain):
        return [bound]
    return [_counting(Expression(term)) for term in split("&&", bound.tree)]


def _counting(term: Expression) -> Expression:
    """Return a term that is true where a number would count as true."""
    return term if is_truth(term.tree) else Expression(chain("&&", [Literal(True), term.tree]))


def _distinct(numbers: Iterable[int]) -> list[int]:
    return sorted(set(numbers))


class Tellers:
    """The distinct things that jobs tell to who looks at some names, and which of them each part tells."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._by_view: dict[Seen, int] = {}
        self.ads: list[Ad] = []
        self.numbers = Growing(np.int32)

    def follow(self, parts: Sequence[Any]) -> None:
        """Take in the parts that came since the last time."""
        for part in parts[self.numbers.length :]:
            number = self._by_view.setdefault(told(part, self._names), len(self.ads))
            if number == len(self.ads):
                self.ads.append(job_ad(part, self._names))
            self.numbers.append(number)


class Demands:
    """What sites' expressions are over the jobs of queues, by the parts `Words` that these have."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts
        self._tellers: dict[frozenset[str], Tellers] = {}

    def verdicts(self, requirements: Expression, face: Face, start: int) -> Mask:
        """Tell of the parts from the `start`-th on whether a face's requirements are true of them."""
        tellers = self._looking(requirements.other)
        numbers = tellers.numbers.values[start:]
        if not start:
            met = np.array(satisfied_by(requirements, tellers.ads, face.ad), dtype=np.bool_)
            found: Mask = met[numbers]
            return found
        judged = {
            each: satisfied(requirements, tellers.ads[each], face.ad) for each in np.unique(numbers).tolist()
        }
        return np.array([judged[each] for each in numbers.tolist()], dtype=np.bool_)

    def ranks(self, rank: Expression, face: Face) -> NDArray[np.float64]:
        """Return by part how well a face likes it."""
        tellers = self._looking(rank.other)
        liked = np.array([number(rank, each, face.ad) for each in tellers.ads])
        found: NDArray[np.float64] = liked[tellers.numbers.values]
        return found

    def _looking(self, names: frozenset[str]) -> Tellers:
        tellers = self._tellers.get(names)
        if tellers is None:
            if len(self._tellers) >= 64:
                self._tellers.clear()
            tellers = self._tellers[names] = Tellers(names)
        tellers.follow(self._parts)
        return tellers
