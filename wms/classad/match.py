"""Matching: values of one ad's expressions over another ad, whether two ads accept each other, and their ranks.

An ad accepts another when its Requirements are `true`: neither undefined nor an error nor a number. SAM-Grid's broker fails
a match when "either requirement conditions evaluate to FALSE", Condor's when they are not TRUE. Condor's library accepts
numbers other than 0. This module does not: Requirements of 1 are more likely an error than intended. An ad without
Requirements accepts all.
"""

from collections.abc import Iterable
from typing import Any

from wms.classad import engine
from wms.classad.ad import Ad
from wms.classad.cost import Cost, TooCostlyError, cost
from wms.classad.expression import Expression, library_text
from wms.classad.tree import Reference
from wms.classad.value import ERROR, Value

_HOPS = 8
"""The most times that one evaluation may pass from an attribute of one ad to an attribute of the other."""
NOTHING = Ad(())


def evaluate(expression: Expression, other: Ad, own: Ad = NOTHING) -> Value:
    """Return the value of an expression of `own` over the ad `other`; an error value if the evaluation would cost too much.

    Meant for expressions that are evaluated seldom, since nothing is cached.
    """
    bound = own.bind(expression)
    if why_too_costly(bound, other, own):
        return ERROR
    if bound.single_text is not None and bound.other.isdisjoint(other.open):
        return other.values.evaluate(bound.single_text)
    return engine.evaluate_text(library_text(bound.tree), own.whole, other.whole)


def satisfied(expression: Expression, other: Ad, own: Ad = NOTHING) -> bool:
    """Return whether an expression, bound to its own ad, is true over `other`."""
    return _raw(expression, other, own) is True


def satisfied_by(expression: Expression, others: Iterable[Ad], own: Ad = NOTHING) -> list[bool]:
    """Return for each of many ads whether an expression, bound to its own ad, is true over that ad."""
    single, envelope, looks = expression.single, expression.envelope, expression.other
    if single is None or not envelope:
        return [satisfied(expression, each, own) for each in others]
    over = engine.evaluate
    return [
        over(single, each.values.ad) is True
        if looks.isdisjoint(each.special[envelope])
        else _careful(expression, each, own) is True
        for each in others
    ]


def numbers(expression: Expression, others: Iterable[Ad], own: Ad = NOTHING) -> list[float]:
    """Return for each of many ads the numeric value of an expression, bound to its own ad, over that ad; 0 if the value is no number."""
    return [_number(_raw(expression, each, own)) for each in others]


def wants(own: Ad, other: Ad) -> bool:
    """Return whether `own` accepts `other`: the Requirements of `own` are true over `other`, or `own` has none."""
    return own.requirements is None or satisfied(own.requirements, other, own)


def matches(job: Ad, resource: Ad) -> bool:
    """Return whether two ads accept each other."""
    return wants(job, resource) and wants(resource, job)


def number(expression: Expression, other: Ad, own: Ad = NOTHING) -> float:
    """Return the numeric value of an expression of `own`, such as a rank, over another ad; 0 if the value is no number."""
    return _number(evaluate(expression, other, own))


def _number(found: Any) -> float:
    # The library's undefined and error are integers of a kind of their own.
    is_number = type(found) in {bool, int, float} and found == found  # noqa: PLR0124 - not a number
    return float(found) if is_number else 0.0


def why_too_costly(expression: Expression, other: Ad, own: Ad = NOTHING) -> str:
    """Return, as text, the limit that an evaluation of the expression could exceed; empty if there is none."""
    try:
        cost(expression.tree, _Pair(other, own))
    except TooCostlyError as error:
        return str(error)
    return ""


def _raw(expression: Expression, other: Ad, own: Ad) -> Any:
    """Return the library's value of an expression over another ad, in the library's own types."""
    envelope = expression.envelope
    if envelope and expression.other.isdisjoint(other.special[envelope]) and expression.single is not None:
        return engine.evaluate(expression.single, other.values.ad)
    return _careful(expression, other, own)


def _careful(expression: Expression, other: Ad, own: Ad) -> Any:
    """Return the library's value of an expression that references open or costly attributes of the other ad.

    An evaluation that would cost too much is not done, and gives the library's error value.
    """
    if why_too_costly(expression, other, own):
        return engine.error()
    if expression.single is not None and expression.other.isdisjoint(other.open):
        return engine.evaluate(expression.single, other.values.ad)
    return engine.evaluate(expression.double, own.whole, other.whole)


class _Pair:
    """Computes the costs of attributes of two ads that reference each other, for an expression of one of them."""

    def __init__(
        self, other: Ad, own: Ad, hops: int = 0, known: dict[tuple[int, str], Cost | None] | None = None
    ) -> None:
        self._other, self._own, self._hops = other, own, hops
        self._known = {} if known is None else known

    def __call__(self, reference: Reference) -> Cost:
        key = reference.key
        if key not in self._other.open:
            return self._other.cost(key)
        return self._of_open(key)

    def _of_open(self, key: str) -> Cost:
        place = (self._hops % 2, key)
        if place not in self._known:
            if self._hops >= _HOPS:
                raise TooCostlyError(f"two ads look at each other more than {_HOPS} times")
            self._known[place] = None
            tree = self._other.tree(key)
            assert tree is not None
            self._known[place] = cost(tree, _Pair(self._own, self._other, self._hops + 1, self._known))
        found = self._known[place]
        if found is None:
            raise TooCostlyError(f"two ads look at each other in a circle, at {key}")
        return found
