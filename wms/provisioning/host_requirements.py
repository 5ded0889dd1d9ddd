"""What a job's requirements ask of the host (node), as bounds on single attributes that can be passed to a batch system.

The approach is the «DIY» one of the EGEE project's slides of 2005 (F. Prelz). The ad of the computing element decides its part of
the expression, by partial evaluation. Attributes that the site forwards stay open. The remaining expression concerns single
hosts. From it come *bounds*: terms on one attribute each that are true wherever the whole expression is. So no host on which the
job could run is excluded. Where the bounds are weaker than the expression, the reason is reported. The job agent then evaluates
the whole expression on the node.
"""

from collections.abc import Iterable, Sequence
from typing import Literal as OneOf
from typing import TypeAlias

from msgspec import Struct

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import NOTHING
from wms.classad.reduce import Sketch, decided, left_by
from wms.classad.tree import (
    Binary,
    Call,
    Chain,
    Conditional,
    Literal,
    NameScope,
    Node,
    Reference,
    Unary,
    split,
)
from wms.classad.writing import literal, write

Relation: TypeAlias = OneOf[">=", ">", "<=", "<", "==", "member"]
Plain: TypeAlias = bool | int | float | str

_TURNED: dict[str, Relation] = {">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "==", "is": "=="}
"""The relation that results when its two sides are exchanged."""
_DENIED: dict[str, str] = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "!=": "==", "isnt": "is"}
"""The relation that results when it is negated."""
_LOWER, _UPPER = (">=", ">"), ("<=", "<")


class HostTerm(Struct, frozen=True):
    """A bound on one attribute of a host, such as `freedisk >= 5000`. Attribute names are in lower case.

    `member`: the attribute's list contains the value. `== true` and `== false`: the attribute is interpreted as a truth value.
    Texts are compared without regard to case.
    """

    attribute: str
    relation: Relation
    value: Plain

    def __str__(self) -> str:
        said = literal(self.value)
        if self.relation == "member":
            return f"{self.attribute} has {said}"
        return f"{self.attribute} {self.relation} {said}"


class UncoveredTerm(Struct, frozen=True):
    """A term of requirements that the bounds do not fully cover, and why. A pilot checks the term on its node before it takes such jobs."""

    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


class HostRequirements(Struct, frozen=True):
    """What a job requires of the host that it runs on: as an expression, and as simple bounds that a batch system can be asked for.

    A host that meets the expression meets all bounds. The reverse holds only if `unasked` is empty.
    """

    left: str
    """The canonical text of the expression: `true` if nothing is required, `false` or the like if no host fits."""
    possible: bool
    """Whether any host of the element may meet the requirements."""
    bounds: tuple[HostTerm, ...] = ()
    unasked: tuple[UncoveredTerm, ...] = ()
    """The terms of the expression that the bounds do not fully cover, each with the reason."""


def host_requirements_of(requirements: Expression, element: Sketch, own: Ad = NOTHING) -> HostRequirements:
    """Return what requirements ask of the hosts of an element. Raise Rejected if the expression grows too large.

    `element` is a sketch of a host's ad: the attributes with known values, and the names of those still unknown. `own` is the job's ad.
    """
    return _of_rest(left_by(requirements, element, own))


def _of_rest(left: Expression) -> HostRequirements:
    """Return the bounds that follow from `left`, the part of the expression that the element's ad does not decide."""
    outcome = decided(left)
    if outcome is not None:
        return HostRequirements(left.text, outcome)
    found = [(term, _implied(term)) for term in split("&&", left.tree)]
    bounds = (bound for _, each in found for bound in each.bounds)
    unasked = tuple(UncoveredTerm(write(term, lower=True), each.lost) for term, each in found if each.lost)
    return HostRequirements(left.text, possible=True, bounds=tightest(bounds), unasked=unasked)


def tightest(bounds: Iterable[HostTerm]) -> tuple[HostTerm, ...]:
    """Return fewer bounds that together mean the same: for each attribute only the tightest lower and the tightest upper one."""
    kept: dict[tuple[object, ...], HostTerm] = {}
    for bound in bounds:
        key = _side(bound)
        before = kept.get(key)
        kept[key] = bound if before is None or _is_tighter(bound, before) else before
    return tuple(kept.values())


def _side(bound: HostTerm) -> tuple[object, ...]:
    """Return the kind of a bound as a key: of bounds with the same key only the tightest is needed."""
    for side in (_LOWER, _UPPER):
        if bound.relation in side and not isinstance(bound.value, str):
            return bound.attribute, side
    return bound.attribute, bound.relation, type(bound.value), bound.value


def _is_tighter(bound: HostTerm, other: HostTerm) -> bool:
    if isinstance(bound.value, str) or isinstance(other.value, str):
        return False
    if bound.value == other.value:
        return bound.relation in (">", "<")
    return (bound.value > other.value) == (bound.relation in _LOWER)


# --- what a term implies -------------------------------------------------------------------------------------------------


class _Implied(Struct, frozen=True):
    """Bounds that are true wherever a term is true. `lost` is why they are weaker than the term; empty if they are equivalent."""

    bounds: tuple[HostTerm, ...] = ()
    lost: str = ""


def _implied(node: Node) -> _Implied:
    match node:
        case Reference(scope=NameScope.OTHER):
            found = _Implied((HostTerm(node.key, "==", value=True),))
        case Binary():
            found = _of_comparison(node)
        case Call():
            found = _of_call(node)
        case Unary(operator="!"):
            found = _of_denial(node.operand)
        case Chain(operator="&&"):
            found = _all([_implied(term) for term in node.terms])
        case Chain():
            found = _any([_implied(term) for term in node.terms if not _never(term)])
        case Conditional():
            found = _of_choice(node)
        case _:
            found = _Implied(lost="no comparison of an attribute with a value")
    return found


def _never(node: Node) -> bool:
    return decided(Expression(node)) is False


def _always(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is True


def _of_comparison(node: Binary) -> _Implied:
    if isinstance(node.right, Reference) and isinstance(node.left, Literal):
        left, right, relation = node.right, node.left, _TURNED.get(node.operator)
    elif isinstance(node.left, Reference) and isinstance(node.right, Literal):
        turned = _TURNED.get(node.operator)
        left, right, relation = node.left, node.right, turned and _TURNED[turned]
    else:
        return _Implied(lost=_why_no_bound(node))
    if relation is None:
        return _Implied(lost=f"{node.operator} says what a host is not, or reckons")
    if left.scope is not NameScope.OTHER or not isinstance(right.value, bool | int | float | str):
        return _Implied(lost="it looks at no value of the host's")
    if isinstance(right.value, bool) and relation != "==":
        return _Implied(lost="neither of true and false is more")
    # `is` distinguishes "a" from "A", and 1 from 1.0; a bound does not.
    lost = "" if node.operator != "is" else "a batch system does not compare so strictly"
    return _Implied((HostTerm(left.key, relation, right.value),), lost)


def _why_no_bound(node: Binary) -> str:
    sides = (node.left, node.right)
    if all(isinstance(each, Reference) for each in sides):
        return "it compares two attributes with each other"
    if any(isinstance(each, Call) for each in sides):
        return "it compares what a function gives"
    return "it compares what is reckoned"


def _of_call(node: Call) -> _Implied:
    match node.function, node.arguments:
        case (
            ("member" | "identicalMember"),
            (Literal(value=str() as value), Reference(scope=NameScope.OTHER) as among),
        ):
            lost = "" if node.function == "member" else "a batch system does not compare so strictly"
            return _Implied((HostTerm(among.key, "member", value),), lost)
        case _:
            return _Implied(lost=f"the function {node.function} has no counterpart")


def _of_denial(node: Node) -> _Implied:
    """Return the bounds that hold wherever this node of the expression is false."""
    match node:
        case Unary(operator="!"):
            # Both accept a number as a truth, which gives no bound; only attributes are true or false.
            return _implied(node.operand)
        case Binary(operator=operator) if operator in _DENIED:
            return _of_comparison(Binary(_DENIED[operator], node.left, node.right))
        case Chain(operator="||"):
            return _all([_of_denial(term) for term in node.terms])
        case Chain():
            return _any([_of_denial(term) for term in node.terms])
        case Reference(scope=NameScope.OTHER):
            return _Implied((HostTerm(node.key, "==", value=False),))
        case _:
            return _Implied(lost="it says what a host is not")


def _of_choice(node: Conditional) -> _Implied:
    """Return the bounds that a choice (`condition ? a : b`) implies.

    If one branch cannot be true, they are those of the condition and the other branch.
    """
    if node.yes is None:
        return _any([_implied(node.condition), _implied(node.no)])
    if _never(node.no):
        return _all([_implied(node.condition), _implied(node.yes)])
    if _never(node.yes):
        return _all([_of_denial(node.condition), _implied(node.no)])
    if _always(node.yes):
        either = _any([_implied(node.condition), _implied(node.no)])
    elif _always(node.no):
        either = _any([_of_denial(node.condition), _implied(node.yes)])
    else:
        either = _any([_implied(node.yes), _implied(node.no)])
    return _Implied(either.bounds, either.lost or "which of two things is asked depends on the host")


def _all(parts: Sequence[_Implied]) -> _Implied:
    bounds = tightest(bound for part in parts for bound in part.bounds)
    return _Implied(bounds, next((part.lost for part in parts if part.lost), ""))


def _any(parts: Sequence[_Implied]) -> _Implied:
    """Return the bounds that all alternatives imply. Of each kind that all have, the loosest bound is taken."""
    if len(parts) < 2:
        return parts[0] if parts else _Implied(lost="it cannot be true")
    first, *others = parts
    loose = [_loosest(bound, others) for bound in first.bounds]
    bounds = tuple(bound for bound in loose if bound is not None)
    exact = len(bounds) == 1 and all(not part.lost and len(part.bounds) == 1 for part in parts)
    attributes = {bound.attribute for part in parts for bound in part.bounds}
    what = f"of {' and '.join(sorted(attributes))}" if len(attributes) > 1 else "that are not one bound"
    return _Implied(bounds, "" if exact else f"alternatives {what}")


def _loosest(bound: HostTerm, others: Iterable[_Implied]) -> HostTerm | None:
    """Return the loosest of `bound` and the bounds of its kind in `others`; None if one of the others has no such bound."""
    for other in others:
        alike = [each for each in other.bounds if _side(each) == _side(bound)]
        if not alike:
            return None
        bound = bound if _is_tighter(alike[0], bound) else alike[0]
    return bound
