"""What jobs require of resources, over many queues at once: each conjunct is evaluated once for what it sees.

The requirements of queues are taken apart into conjuncts, of which there are few: `other.GlueCEStateStatus == "Production"` may be
in all of them. A conjunct's verdict is kept by what it sees of an ad, so that ads which differ elsewhere share it.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import is_truth
from wms.classad.match import NOTHING, satisfied
from wms.classad.reduce import Sketch, could
from wms.classad.tree import Chain, Literal, Scope, chain, references, split
from wms.taskqueue.ads import Seen, Words, job_ad, told, wish
from wms.taskqueue.faces import Face
from wms.taskqueue.growing import Growing
from wms.taskqueue.wants import Asked

Mask = NDArray[np.bool_]

KEPT = 16_384
"""Verdicts of one expression, by what it saw."""


class Conjunct:
    """A term of jobs' requirements, bound to the ads of the jobs, and what it was over what it saw."""

    __slots__ = ("_verdicts", "evaluated", "expression")

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.evaluated = 0
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

    def could(self, known: Sketch, job: Words | None = None) -> bool:
        """Tell whether it may be met by an ad that is as a sketch says, which looks back at the job or at none."""
        names = self.expression.other
        key = known.ad.view(names), names & known.free, job
        found = self._verdicts.get(key)
        if found is None:
            found = self._keep(key, could(self.expression, known, job_ad(job) if job else NOTHING))
        return found

    def _keep(self, view: Seen, verdict: bool) -> bool:  # noqa: FBT001 - a fact
        if len(self._verdicts) >= KEPT:
            self._verdicts.clear()
        self._verdicts[view] = verdict
        self.evaluated += 1
        return verdict


class Wishes:
    """The requirements of jobs, taken apart: `looked` are the names that they look at."""

    def __init__(self) -> None:
        self.looked: frozenset[str] = frozenset()
        self._conjuncts: list[Conjunct] = []
        self._numbers: dict[str, int] = {}
        self._taken: dict[tuple[str, Seen], list[int]] = {}
        """The conjuncts of a text, by what it says of its own job."""
        self._terms = Growing(np.int32)
        """The numbers of the conjuncts of all parts, one part behind the other; none is without."""
        self._ends = Growing(np.int64)
        self._parts: list[Asked] = []
        self._true = self._number(Expression.parse("true"))

    @property
    def evaluated(self) -> int:
        """Pairs of a conjunct and what it saw, so far."""
        return sum(each.evaluated for each in self._conjuncts)

    def append(self, part: Asked) -> None:
        """Take in the next part."""
        for each in [self._true] if part is None else self._of(*part):
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
                met[each] = conjunct.over(face.ad, views[names]) or (
                    face.sketch is not None and conjunct.could(face.sketch)
                )
            else:
                looking.append(each)
        starts = np.concatenate([[first], self._ends.values[start:-1]]) - first
        found: Mask = np.logical_and.reduceat(met[terms], starts)
        for each in looking:
            places = np.searchsorted(starts, np.flatnonzero(terms == each), side="right") - 1
            found[places] &= self._open_verdicts(self._conjuncts[each], (places + start).tolist(), face)
        return found

    def _open_verdicts(self, conjunct: Conjunct, parts: list[int], face: Face) -> list[bool]:
        """Judge a conjunct that looks at what looks back at the job, for each part that has it."""
        view = face.ad.view(conjunct.expression.other)
        asked = [part for number in parts if (part := self._parts[number]) is not None]
        return [
            conjunct.over_open(face.ad, view, job)
            or (face.sketch is not None and conjunct.could(face.sketch, job))
            for _, job in asked
        ]

    def _of(self, text: str, job: Words) -> list[int]:
        """Return the numbers of the conjuncts of a text, bound to a job's ad."""
        expression = Expression.parse(text)
        own = expression.own | expression.bare
        key = text, told(job, own) if own else ()
        found = self._taken.get(key)
        if found is None:
            found = self._taken[key] = sorted(set(map(self._number, _terms(wish(text, job)))))
        return found

    def _number(self, expression: Expression) -> int:
        number = self._numbers.setdefault(expression.text, len(self._conjuncts))
        if number == len(self._conjuncts):
            self._conjuncts.append(Conjunct(expression))
            self.looked |= expression.other
        return number


def _terms(bound: Expression) -> Iterable[Expression]:
    """Return the conjuncts, each as an expression that is true where the conjunct counts as true."""
    if not isinstance(bound.tree, Chain):
        return [bound]
    return [_counting(Expression(term)) for term in split("&&", bound.tree)]


def _counting(term: Expression) -> Expression:
    """Return a term that is true where a number would count as true."""
    return term if is_truth(term.tree) else Expression(chain("&&", [Literal(True), term.tree]))
