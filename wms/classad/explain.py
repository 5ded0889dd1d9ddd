"""Explanations why an expression is not true over an ad: the conjuncts that fail, and the values that they reference."""

from msgspec import Struct

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import truth
from wms.classad.match import NOTHING, evaluate, why_too_costly
from wms.classad.tree import NameScope, Node, Reference, split, walk
from wms.classad.value import ERROR, RecordText, Special, Value
from wms.classad.writing import literal, write
from wms.errors import shown

_SEEN = 20
_SHOWN = 100
_LENGTH = 200


class ExplainedTerm(Struct, frozen=True, kw_only=True):
    """One conjunct of an expression, with its value and whether it is met."""

    text: str
    """The text of the conjunct, as written."""
    value: Value
    met: bool
    seen: tuple[tuple[str, Value], ...] = ()
    """The referenced attributes, by name and scope, with their values: at most 20, and only for the first 100 conjuncts."""
    note: str = ""
    """A further fact on the value, such as the limit that the evaluation exceeds; empty if there is none."""

    def __str__(self) -> str:
        seen = ", ".join(f"{name} = {said(value)}" for name, value in self.seen)
        note = f"; {self.note}" if self.note else ""
        return f"{shown(self.text, _LENGTH)} is {said(self.value)}{note}{f' where {seen}' if seen else ''}"


def explain(expression: Expression, other: Ad, own: Ad = NOTHING) -> tuple[ExplainedTerm, ...]:
    """Return the conjuncts of an expression of the ad `own`, each with its value over `other` and whether it is met.

    The expression is true if all conjuncts are met.
    """
    terms = split("&&", expression.tree)
    return tuple(
        _judged(term, other, own, number, alone=len(terms) == 1) for number, term in enumerate(terms)
    )


def failing(own: Ad, other: Ad) -> tuple[ExplainedTerm, ...]:
    """Return the conjuncts of the Requirements of `own` that `other` does not meet; none if `own` accepts `other`."""
    requirements = own.expression("requirements")
    if requirements is None:
        return ()
    return tuple(each for each in explain(requirements, other, own) if not each.met)


def said(value: Value) -> str:
    """Return the text of a value, cut to 200 characters."""
    match value:
        case RecordText():
            text: str = value
        case tuple():
            text = "{" + ", ".join(said(each) for each in value) + "}"
        case Special() | bool() | int() | float() | str():
            text = literal(value)
    return shown(text, _LENGTH)


def _judged(term: Node, other: Ad, own: Ad, number: int, *, alone: bool) -> ExplainedTerm:
    expression = Expression(term)
    value = evaluate(expression, other, own)
    # Beside others a number counts as true or false; alone it stays a number.
    met = value is True if alone else truth(value) is True
    return ExplainedTerm(
        text=write(term),
        value=value,
        met=met,
        seen=_seen(term, other, own) if number < _SHOWN else (),
        note=_note(expression, value, met, other, own),
    )


def _note(expression: Expression, value: Value, met: bool, other: Ad, own: Ad) -> str:  # noqa: FBT001 - a fact of the value
    if value is ERROR:
        return why_too_costly(own.bind(expression), other, own)
    if not met and isinstance(value, int | float) and not isinstance(value, bool):
        return "a number is not true: compare it with something"
    return ""


def _seen(term: Node, other: Ad, own: Ad) -> tuple[tuple[str, Value], ...]:
    found: dict[str, Value] = {}
    for node in walk(term):
        if isinstance(node, Reference) and node.scope is not NameScope.LOCAL and len(found) < _SEEN:
            found.setdefault(write(node), evaluate(Expression(node), other, own))
    return tuple(sorted(found.items()))
