"""ClassAd requirements of the jobs of many queues: each conjunct is evaluated once for each set of values that it reads.

The requirements of queues are split into conjuncts, the terms between `&&` (`wms.matching.conjuncts`). There are few distinct
ones: `other.GlueCEStateStatus == "Production"` may be in all of them. A conjunct's verdict is cached by the values that it reads
of an ad, so ads that differ in other attributes share it. Ads that have none of its attributes share one verdict.

Users may write thousands of conjuncts that each take a millisecond, and some values of ads change with each request. So the evaluations
that are made at once are bounded (`Effort`). Those come first that are cheap and on which little was spent so far; the requirements that
are left are undecided until the next time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wms.bounded_cache import BoundedCache
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.limits import WORK
from wms.classad.match import NOTHING, satisfied
from wms.classad.reduce import Sketch, could
from wms.classad.tree import NameScope, references
from wms.matching.ads import JobAttributes, Seen, job_ad, job_values
from wms.matching.conjuncts import SplitRequirements, Term, split_requirements
from wms.matching.two_sided import Asked
from wms.queue_index.effort import STEPS_A_CHARACTER, Effort, steps
from wms.queue_index.growable_array import GrowableArray
from wms.queue_index.significant_attributes import AdClass

Mask = NDArray[np.bool_]

TRUE = 0
"""The number of the conjunct of queues without requirements."""
KEPT_NAMES = 65_536
"""The most attribute values in the cached verdicts of one expression."""
JUDGE_STEPS = 1_000
"""The steps that a judgement takes beside the evaluation: 4 us."""
STEPS_A_BYTE = 12
"""The most steps of an evaluation for each byte of a long attribute, unless a pattern is searched for in it."""


class Conjunct:
    """A conjunct of requirements with the jobs' own values filled in. Verdicts are cached by the ad values that it reads."""

    __slots__ = ("_steps", "_verdicts", "evaluated", "expression", "names", "term")

    def __init__(self, term: Term) -> None:
        self.term = term
        self.expression = term.expression
        self.names = term.names
        self._steps = steps(self.expression.tree)
        self.evaluated = 0
        self._verdicts = BoundedCache[Seen, bool](KEPT_NAMES // (len(term.names) + 1))

    def known(self, ad_class: AdClass, view: Seen) -> bool | None:
        """Return the cached verdict on a class of ads, of which `view` holds the values that the conjunct reads; None if there is none."""
        found = self._verdicts.get(view)
        if found is False and ad_class.sketch is not None:
            return self._verdicts.get(self._sketched(ad_class.sketch, None))
        return found

    def judged(self, ad_class: AdClass, view: Seen) -> bool:
        """Return whether a class of ads meets the conjunct, or could once its pilot runs; none of the values references the job."""
        return self.over(ad_class.ad, view) or (ad_class.sketch is not None and self.could(ad_class.sketch))

    @property
    def spent(self) -> int:
        """About how many steps all evaluations took, with the next one."""
        return self._steps * (1 + self.evaluated)

    def steps(self, ad_class: AdClass) -> int:
        """Return about how many steps `judged` takes, each of 1 to 5 ns."""
        read = sum(ad_class.ad.cost(name).size for name in self.names)
        looked = STEPS_A_CHARACTER * len(self.expression.text) if ad_class.sketch is not None else 0
        return JUDGE_STEPS + min(self._steps + STEPS_A_BYTE * read, WORK) + looked

    def over(self, ad: Ad, view: Seen) -> bool:
        """Return whether an ad meets the conjunct.

        `view` holds the values of the ad that the conjunct reads, none of which references the job.
        """
        found = self._verdicts.get(view)
        if found is None:
            found = self._keep(view, satisfied(self.expression, ad))
        return found

    def over_open(
        self, ad_class: AdClass, view: Seen, job: JobAttributes, read: "OpenAttributes", effort: Effort
    ) -> bool | None:
        """Return whether a class of ads meets the conjunct, or could, if attributes that it reads (`read`) are expressions over the job.

        `view` holds the values of the ad that the conjunct reads. Return None if the effort lacks.
        """
        key = view, job_values(job, read.names)
        found = self._verdicts.get(key)
        if found is None:
            if not effort.spend(self.steps(ad_class) + read.steps):
                return None
            found = self._keep(key, satisfied(self.expression, ad_class.ad, job_ad(job, read.names)))
        return found or (ad_class.sketch is not None and self.could(ad_class.sketch, job))

    def open_in(self, ad: Ad) -> "OpenAttributes":
        """Return what the attributes of an ad read of the job, of those that the conjunct reads."""
        trees = [tree for key in self.expression.other & ad.open if (tree := ad.tree(key)) is not None]
        names = frozenset[str]().union(*(references(tree, NameScope.OTHER) for tree in trees))
        return OpenAttributes(names, sum(map(steps, trees)))

    def could(self, known: Sketch, job: JobAttributes | None = None) -> bool:
        """Return whether the ad of a pilot not yet sent could meet the conjunct.

        `known` is what is known of the ad so far. `job` is the job that the ad's attributes reference; None if they reference
        none.
        """
        key = self._sketched(known, job)
        found = self._verdicts.get(key)
        if found is None:
            found = self._keep(key, could(self.expression, known, job_ad(job) if job else NOTHING))
        return found

    def _sketched(self, known: Sketch, job: JobAttributes | None) -> Seen:
        names = self.expression.other
        return known.ad.view(names), names & known.free, job

    def _keep(self, view: Seen, verdict: bool) -> bool:  # noqa: FBT001 - a fact
        self._verdicts[view] = verdict
        self.evaluated += 1
        return verdict


class OpenAttributes(NamedTuple):
    """Attributes of an ad that are expressions over the job: the job's attributes that they read, and about how many steps they take."""

    names: frozenset[str]
    steps: int


class JobExpressions:
    """The ClassAd requirements of the jobs of all queues, split into conjuncts that queues share. Evaluations are made out of `effort`."""

    def __init__(self, effort: Effort | None = None) -> None:
        self.undecided: Mask | None = None
        """Which of the requirements that were last asked for are not decided, for lack of effort; None: they all are."""
        self._effort = effort or Effort()
        self._conjuncts: list[Conjunct] = []
        self._numbers: dict[str, int] = {}
        self._taken: dict[SplitRequirements, list[int]] = {}
        """The numbers of the conjuncts, by the requirements that are split into these."""
        self._terms = GrowableArray(np.int32)
        """The numbers of the conjuncts of all requirements, one after the other; each of the requirements has at least one."""
        self._ends = GrowableArray(np.int64)
        self._parts: list[Asked] = []
        self._number(Term(Expression.parse("true")))  # the first, TRUE

    @property
    def evaluated(self) -> int:
        """How many evaluations were made so far: one for each conjunct and each set of values that it read.

        Evaluations over ads that have none of the conjunct's attributes do not count.
        """
        return sum(each.evaluated for each in self._conjuncts)

    def containers(self) -> Iterator[Any]:
        """Yield the lists and dicts with entries for many kinds of job, which may be freed in parts when these are no longer used."""
        yield from (self._taken, self._numbers, self._conjuncts, self._parts)

    def append(self, part: Asked) -> frozenset[str]:
        """Add the requirements of the next kind of job.

        Return the names, in lower case, of the resource attributes that they reference.
        """
        numbers = [TRUE] if part is None else self._of(split_requirements(*part))
        for each in numbers:
            self._terms.append(each)
        self._ends.append(self._terms.length)
        self._parts.append(part)
        return frozenset[str]().union(*(self._conjuncts[each].names for each in numbers))

    def verdicts(self, ad_class: AdClass, start: int) -> Mask:
        """Return, for each of the requirements added from number `start` on, whether they are true of the ads of the class `ad_class`.

        It is False of those that are undecided.
        """
        first = int(self._ends.values[start - 1]) if start else 0
        terms = self._terms.values[first:]
        starts = np.concatenate([[first], self._ends.values[start:-1]]) - first
        if not self._effort.look(min(len(terms), len(self._conjuncts))):
            self.undecided = np.logical_or.reduceat(terms != TRUE, starts)
            return ~self.undecided
        used = np.unique(terms).tolist() if start else range(len(self._conjuncts))
        met = np.ones(len(self._conjuncts), dtype=np.bool_)
        views: dict[frozenset[str], Seen] = {}
        looking: list[int] = []
        unknown: list[int] = []
        is_sketch = ad_class.sketch is not None
        for each in used:
            conjunct = self._conjuncts[each]
            names = conjunct.names
            if names.isdisjoint(ad_class.names):
                met[each] = conjunct.term.over_nothing(is_sketch=is_sketch)
                continue
            if names not in views:
                views[names] = ad_class.ad.view(names)
            if names.isdisjoint(ad_class.ad.open):
                verdict = conjunct.known(ad_class, views[names])
                if verdict is None:
                    unknown.append(each)
                else:
                    met[each] = verdict
            else:
                looking.append(each)
        left = self._judge(unknown, ad_class, met)
        found: Mask = np.logical_and.reduceat(met[terms], starts)
        undecided = np.zeros(len(found), dtype=np.bool_)
        if left:
            met[left] = False
            undecided = found & ~np.logical_and.reduceat(met[terms], starts)
        for each in looking:
            places = np.searchsorted(starts, np.flatnonzero(terms == each), side="right") - 1
            judged = self._open_verdicts(self._conjuncts[each], (places + start).tolist(), ad_class)
            found[places] &= [verdict is not False for verdict in judged]
            undecided[places] |= [verdict is None for verdict in judged]
        undecided &= found
        self.undecided = undecided if undecided.any() else None
        return found & ~undecided

    def _judge(self, numbers: list[int], ad_class: AdClass, met: Mask) -> list[int]:
        """Judge conjuncts over a class of ads, and write the verdicts to `met`. Return those for which the effort lacks.

        First come those on which least was spent. So many that read what changes each time leave room for a new one, and dear ones for cheap ones.
        """
        by_spent = sorted(numbers, key=lambda each: self._conjuncts[each].spent)
        for place, each in enumerate(by_spent):
            conjunct = self._conjuncts[each]
            if not self._effort.spend(conjunct.steps(ad_class)):
                return by_spent[place:]
            met[each] = conjunct.judged(ad_class, ad_class.ad.view(conjunct.names))
        return []

    def _open_verdicts(self, conjunct: Conjunct, parts: list[int], ad_class: AdClass) -> list[bool | None]:
        """Judge a conjunct for each of the requirements in `parts`, if attributes of the ad that it reads are expressions over the job.

        None: the effort lacks.
        """
        view, read = ad_class.ad.view(conjunct.names), conjunct.open_in(ad_class.ad)
        asked = [part for number in parts if (part := self._parts[number]) is not None]
        return [conjunct.over_open(ad_class, view, job, read, self._effort) for _, job in asked]

    def _of(self, taken: SplitRequirements) -> list[int]:
        """Return the numbers of the conjuncts of requirements, in ascending order."""
        found = self._taken.get(taken)
        if found is None:
            found = self._taken[taken] = sorted({self._number(term) for term in taken.terms})
            taken.slim()
        return found

    def _number(self, term: Term) -> int:
        number = self._numbers.setdefault(term.expression.text, len(self._conjuncts))
        if number == len(self._conjuncts):
            term.compile()
            self._conjuncts.append(Conjunct(term))
        return number
