"""Partial evaluation: what another ad decides of an expression is folded away, and what it says nothing of is left.

So a computing element's ad decides its part of a job's requirements, and what is left about the host goes to the batch
system. Unlike in a match, an attribute that the ad lacks is not undefined: it is not known yet. Where it is known which
attributes those are, the ad is a *sketch*, in which all others that it lacks are undefined.
"""

from collections.abc import Iterable
from typing import NamedTuple

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import fold, truth
from wms.classad.match import NOTHING
from wms.classad.parsing import nodes
from wms.classad.tree import Binary, Chain, Choice, Literal, NameScope, Node, Reference, Unary, with_children
from wms.classad.value import UNDEFINED, Special
from wms.errors import Rejected


class Sketch(NamedTuple):
    """An ad of which `free`, names in lower case, is not known yet; what is neither there nor free is undefined."""

    ad: Ad
    free: frozenset[str]


def sketch(ad: Ad, names: Iterable[str]) -> Sketch:
    """Return what is known of an ad when these attributes may yet be others, and with them what is reckoned from them."""
    free = {name.lower() for name in names}
    kept = {name: expression for name in ad.names if (expression := ad.expression(name)) is not None}
    while True:
        looking = {name for name, each in kept.items() if name.lower() in free or _looks(each, free)}
        if not looking:
            return Sketch(Ad.of(kept), frozenset(free))
        free |= {name.lower() for name in looking}
        kept = {name: each for name, each in kept.items() if name not in looking}


def _looks(expression: Expression, names: set[str]) -> bool:
    return not names.isdisjoint(expression.own | expression.bare)


def left_by(expression: Expression, known: Sketch, own: Ad = NOTHING) -> Expression:
    """Return what a sketch leaves of an expression of `own`, bound to it. Raises Rejected if it grows too large."""
    bound = own.bind(expression)
    absent = bound.other - known.free - {name.lower() for name in known.ad.names}
    return own.bind(reduce(Expression(_lacking(bound.tree, absent)), known.ad, own))


def _lacking(node: Node, absent: frozenset[str]) -> Node:
    if isinstance(node, Reference):
        return Literal(UNDEFINED) if node.scope is NameScope.OTHER and node.key in absent else node
    return with_children(node, lambda part: _lacking(part, absent))


def could(expression: Expression, known: Sketch, own: Ad = NOTHING) -> bool:
    """Tell whether an expression of `own` may be true of an ad that is as a sketch says; not of one that grows too large."""
    try:
        return decided(left_by(expression, known, own)) is not False
    except Rejected:
        return False


def own_part(expression: Expression, known: Sketch) -> Expression | None:
    """Return an expression of an ad that is known as a sketch, with what is known of that ad folded in; what is free is left.

    None if it grows too large.
    """
    whole = _put_in(expression.tree, known)
    try:
        nodes(whole, "")
    except Rejected:
        return None
    return Expression(fold(whole))


def _put_in(node: Node, known: Sketch) -> Node:
    if not isinstance(node, Reference):
        return with_children(node, lambda part: _put_in(part, known))
    if node.scope in {NameScope.OTHER, NameScope.LOCAL}:
        return node
    if (tree := known.ad.tree(node.key)) is not None:
        return tree
    if node.key in known.free:
        return Reference(NameScope.OWN, node.name)
    return Literal(UNDEFINED) if node.scope is NameScope.OWN else Reference(NameScope.OTHER, node.name)


def could_want(wanted: Expression, other: Ad) -> bool:
    """Tell whether what `own_part` left may be true of another ad, which is known whole; not of one that grows too large."""
    whole = _lacking(_known(wanted.tree, other), wanted.other)
    try:
        nodes(whole, "")
    except Rejected:
        return False
    return decided(Expression(fold(whole))) is not False


def reduce(expression: Expression, other: Ad, own: Ad = NOTHING, place: str = "") -> Expression:
    """Return what is left of an expression of `own` when another ad is known; its `names` are those still free.

    The value over any ad that has what `other` has, and more, is the expression's. Raises Rejected if it grows too large.
    """
    whole = _known(own.bind(expression).tree, other)
    nodes(whole, place)
    return Expression(fold(whole))


def decided(expression: Expression) -> bool | None:
    """Tell whether what is left of a requirement is true, or can no longer be, whatever is found out; None if that is open."""
    if isinstance(expression.tree, Literal):
        return expression.tree.value is True
    return False if _never(expression.tree) else None


def _never(node: Node) -> bool:
    """Tell whether a node cannot count as true."""
    match node:
        case Literal():
            return truth(node.value) is not True
        case Chain():
            return (any if node.operator == "&&" else all)(_never(term) for term in node.terms)
        case Choice():
            return _never(node.condition if node.yes is None else node.yes) and _never(node.no)
        case _:
            return _has_no_value(node)


def _has_no_value(node: Node) -> bool:
    """Tell whether a node is undefined or an error whatever is found out: what is reckoned from such a thing is such a thing."""
    match node:
        case Literal():
            return isinstance(node.value, Special)
        case Unary():
            return _has_no_value(node.operand)
        case Binary():
            return node.operator not in ("is", "isnt") and any(map(_has_no_value, (node.left, node.right)))
        case _:
            return False


def _known(node: Node, other: Ad) -> Node:
    if not isinstance(node, Reference):
        return with_children(node, lambda part: _known(part, other))
    tree = other.tree(node.key) if node.scope is NameScope.OTHER else None
    return node if tree is None else _turned(tree)


def _turned(node: Node) -> Node:
    """Return a bound tree of the other ad as it reads from this one: its other is we."""
    if isinstance(node, Reference):
        return Reference(NameScope.OWN, node.name) if node.scope is NameScope.OTHER else node
    return with_children(node, _turned)
