"""Requirements and ranks in sites' ads over the jobs of many queues, evaluated once for each distinct set of values they read.

A site's expression cannot distinguish queues whose jobs have equal values for the names that it references. Its results are
cached by its text for each such set of values, and are looked up for queues that are added later. What is evaluated at once is bounded
(`Effort`), since a site may write an expression that takes milliseconds for each.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wms.bounded_cache import BoundedCache
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import numbers, satisfied_by
from wms.matching.ads import JobAttributes, job_ad, job_value
from wms.queue_index.effort import Effort, steps
from wms.queue_index.growable_array import GrowableArray

Mask = NDArray[np.bool_]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

KEPT = 4_096
"""The most expressions in sites' ads whose results are cached."""
KEPT_NAMES = 256
"""The most sets of referenced attribute names that are cached."""


class AttributeValues:
    """The values of one job attribute, numbered. Kinds of job with the same value have the same number."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._by_answer: dict[Hashable, int] = {}
        self._numbers = GrowableArray(np.int64)

    def since(self, parts: Sequence[JobAttributes], start: int) -> tuple[NDArray[np.int64], int]:
        """Return the attribute's value, as a number, for each kind of job in `parts` from number `start` on.

        Also return how many values there are.
        """
        by_answer, name = self._by_answer, self._name
        if self._numbers.length < len(parts):
            new = parts[self._numbers.length :]
            self._numbers.extend(
                [by_answer.setdefault(job_value(part, name), len(by_answer)) for part in new]
            )
        return self._numbers.values[start:], len(by_answer)


class ValueCombinations:
    """The combinations of values of some job attributes, numbered. Kinds of job with equal values have the same number.

    `ads` has, for each number, an ad with these values.
    """

    def __init__(self, names: frozenset[str], tellings: Iterable[AttributeValues]) -> None:
        self._names = names
        self._tellings = list(tellings)
        self._by_answers: dict[tuple[int, ...], int] = {}
        self.ads: list[Ad] = []
        self._numbers = GrowableArray(np.int32)

    def follow(self, parts: Sequence[JobAttributes]) -> Ints:
        """Number the kinds of job that are new in `parts`; return the number of every kind's combination of values."""
        start = self._numbers.length
        if start < len(parts):
            columns = [telling.since(parts, start) for telling in self._tellings]
            alike = np.zeros(len(parts) - start, dtype=np.int64)
            for answers, distinct in columns:
                # Numbered anew each time, or the product of all could pass 64 bits.
                alike = np.unique(alike * distinct + answers, return_inverse=True)[1]
            _, firsts, alike = np.unique(alike, return_index=True, return_inverse=True)
            known = [
                self._number(tuple(int(answers[first]) for answers, _ in columns), parts[start + first])
                for first in firsts.tolist()
            ]
            self._numbers.extend(np.array(known)[alike])
        return self._numbers.values

    def _number(self, answers: tuple[int, ...], part: JobAttributes) -> int:
        number = self._by_answers.setdefault(answers, len(self.ads))
        if number == len(self.ads):
            self.ads.append(job_ad(part, self._names))
        return number


class ExpressionResults:
    """The cached results (truths or ranks) of one expression of a site's ad, for each distinct combination of job values."""

    def __init__(
        self, expression: Expression, tellers: ValueCombinations, effort: Effort, *, is_rank: bool
    ) -> None:
        self._expression = expression
        self._steps = steps(expression.tree)
        self._tellers = tellers
        self._effort = effort
        self._is_rank = is_rank
        self._values: NDArray[Any] = np.empty(0, np.float64 if is_rank else np.bool_)

    def of(
        self, parts: Sequence[JobAttributes], start: int, own: Ad
    ) -> tuple[NDArray[Any], Mask | None, int]:
        """Return the results for `parts` (kinds of job) from number `start` on, and the number of evaluations made for it.

        Between them is which of the results are undecided for lack of effort, and 0; None: none is. `own` is the ad that the expression
        belongs to.
        """
        tells = self._tellers.follow(parts)[start:]
        new = self._affordable(self._tellers.ads[len(self._values) :])
        if new:
            judge = numbers if self._is_rank else satisfied_by
            said = np.array(judge(self._expression, new, own), self._values.dtype)
            self._values = np.concatenate([self._values, said])
        undecided = tells >= len(self._values)
        if not undecided.any():
            return self._values[tells], None, len(new)
        found = np.zeros(len(tells), self._values.dtype)
        found[~undecided] = self._values[tells[~undecided]]
        return found, undecided, len(new)

    def _affordable(self, ads: Sequence[Ad]) -> Sequence[Ad]:
        return ads[: sum(1 for _ in takewhile(self._effort.spend, repeat(self._steps, len(ads))))]


class SiteExpressions:
    """The results of sites' expressions over the jobs of all queues. `parts` has the attributes of each distinct kind of job.

    The list may grow between calls.
    """

    def __init__(self, parts: Sequence[Any], effort: Effort | None = None) -> None:
        self.undecided: Mask | None = None
        """Of which kinds of job the last results are not decided, for lack of `effort`; None: they all are."""
        self._effort = effort or Effort()
        self.evaluated = 0
        """How many evaluations were made so far: one for each expression and each combination of job values."""
        self._parts = parts
        self._tellings = BoundedCache[str, AttributeValues](KEPT_NAMES)
        self._tellers = BoundedCache[frozenset[str], ValueCombinations](KEPT_NAMES)
        self._opinions = BoundedCache[tuple[str, bool], ExpressionResults](KEPT)

    def verdicts(self, requirements: Expression, own: Ad, start: int) -> Mask:
        """Return, for each kind of job from number `start` on, whether the requirements of the ad `own` are true of it."""
        return self._said(requirements, own, start, is_rank=False)

    def ranks(self, rank: Expression, own: Ad) -> Floats:
        """Return the rank that the expression `rank` of the ad `own` gives each kind of job."""
        return self._said(rank, own, 0, is_rank=True)

    def _said(self, expression: Expression, own: Ad, start: int, *, is_rank: bool) -> NDArray[Any]:
        name = expression.text, is_rank
        opinion = self._opinions.get(name)
        if opinion is None:
            tellers = self._looking(expression.other)
            opinion = self._opinions[name] = ExpressionResults(
                expression, tellers, self._effort, is_rank=is_rank
            )
        found, self.undecided, evaluated = opinion.of(self._parts, start, own)
        self.evaluated += evaluated
        return found

    def _looking(self, names: frozenset[str]) -> ValueCombinations:
        tellers = self._tellers.get(names)
        if tellers is None:
            tellers = self._tellers[names] = ValueCombinations(names, map(self._telling, sorted(names)))
        return tellers

    def _telling(self, name: str) -> AttributeValues:
        if name not in self._tellings:
            self._tellings[name] = AttributeValues(name)
        return self._tellings[name]
