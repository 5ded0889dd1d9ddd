"""Matching: what an expression of one ad is over another, whether two ads want each other, and how well they like it.

An ad wants another when its Requirements are `true`: not undefined, no error, and no number either. SAM-Grid's broker fails a
match when "either requirement conditions evaluate to FALSE", Condor's when they are not TRUE; its library lets a number other
than 0 pass, which we do not, for a Requirements of 1 more likely is a slip than a wish. An ad without Requirements wants all.
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
"""How often an evaluation may go from one ad to the other and back."""
NOTHING = Ad(())


def evaluate(expression: Expression, other: Ad, own: Ad = NOTHING) -> Value:
    """Return the value of an expression of `own` over another ad. What would cost too much is an error.

    For expressions that are evaluated seldom: nothing of it is kept.
    """
    bound = own.bind(expression)
    if why_too_costly(bound, other, own):
        return ERROR
    if bound.single_text is not None and bound.other.isdisjoint(other.open):
        return other.values.evaluate(bound.single_text)
    return engine.evaluate_text(library_text(bound.tree), own.whole, other.whole)


def satisfied(expression: Expression, other: Ad, own: Ad = NOTHING) -> bool:
    """Tell whether an expression, bound to its own ad, is true over another."""
    return _raw(expression, other, own) is True


def satisfied_by(expression: Expression, others: Iterable[Ad], own: Ad = NOTHING) -> list[bool]:
    """Tell for many ads whether an expression, bound to its own ad, is true over them."""
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
    """Return for many ads the number that an expression, bound to its own ad, is over them; what is none counts as 0."""
    return [_number(_raw(expression, each, own)) for each in others]


def wants(own: Ad, other: Ad) -> bool:
    """Tell whether an ad's Requirements are true over another ad."""
    return own.requirements is None or satisfied(own.requirements, other, own)


def matches(job: Ad, resource: Ad) -> bool:
    """Tell whether two ads want each other."""
    return wants(job, resource) and wants(resource, job)


def number(expression: Expression, other: Ad, own: Ad = NOTHING) -> float:
    """Return the number that an expression of `own` is over another ad, as a rank is read: what is none counts as 0."""
    return _number(evaluate(expression, other, own))


def _number(found: Any) -> float:
    # The library's undefined and error are integers of a kind of their own.
    is_number = type(found) in {bool, int, float} and found == found  # noqa: PLR0124 - not a number
    return float(found) if is_number else 0.0


def why_too_costly(expression: Expression, other: Ad, own: Ad = NOTHING) -> str:
    """Return which limit an evaluation could pass; nothing if none."""
    try:
        cost(expression.tree, _Pair(other, own))
    except TooCostlyError as error:
        return str(error)
    return ""


def _raw(expression: Expression, other: Ad, own: Ad) -> Any:
    """Evaluate, in the library's kinds of values."""
    envelope = expression.envelope
    if envelope and expression.other.isdisjoint(other.special[envelope]) and expression.single is not None:
        return engine.evaluate(expression.single, other.values.ad)
    return _careful(expression, other, own)


def _careful(expression: Expression, other: Ad, own: Ad) -> Any:
    """Evaluate when the ad is open to the expression, or could make it costly."""
    if why_too_costly(expression, other, own):
        return engine.error()
    if expression.single is not None and expression.other.isdisjoint(other.open):
        return engine.evaluate(expression.single, other.values.ad)
    return engine.evaluate(expression.double, own.whole, other.whole)


class _Pair:
    """The costs of attributes of two ads that look at each other, from one of them."""

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
