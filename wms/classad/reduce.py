"""Partial evaluation: attributes of a known ad are put into an expression, and it is folded; other references remain.

So a computing element's ad decides some of a job's requirements; the remaining ones, on the host, go to the batch system. Unlike in a
match, an attribute that the ad lacks is not known yet, rather than undefined. In a *sketch* the unknown attributes are listed, and
all others that the ad lacks are undefined.
"""

from collections.abc import Iterable
from typing import NamedTuple

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import fold, truth
from wms.classad.match import NOTHING
from wms.classad.parsing import nodes
from wms.classad.tree import (
    Binary,
    Chain,
    Conditional,
    Literal,
    NameScope,
    Node,
    Reference,
    Unary,
    with_children,
)
from wms.classad.value import UNDEFINED, Special
from wms.errors import Rejected


class Sketch(NamedTuple):
    """An ad that is known only in part.

    The attributes named in `free` (lower case) have no known value yet. Other attributes that the ad lacks are undefined.
    """

    ad: Ad
    free: frozenset[str]


def sketch(ad: Ad, names: Iterable[str]) -> Sketch:
    """Return the sketch of an ad in which the named attributes are not known yet, nor the attributes that reference them."""
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
    """Return what remains of an expression of `own` that is bound and evaluated over a sketch.

    Raise Rejected if it grows too large.
    """
    bound = own.bind(expression)
    absent = bound.other - known.free - {name.lower() for name in known.ad.names}
    return own.bind(reduce(Expression(_lacking(bound.tree, absent)), known.ad, own))


def _lacking(node: Node, absent: frozenset[str]) -> Node:
    if isinstance(node, Reference):
        return Literal(UNDEFINED) if node.scope is NameScope.OTHER and node.key in absent else node
    return with_children(node, lambda part: _lacking(part, absent))


def could(expression: Expression, known: Sketch, own: Ad = NOTHING) -> bool:
    """Return whether an expression of `own` may be true of an ad that a sketch describes; False if it grows too large."""
    try:
        return decided(left_by(expression, known, own)) is not False
    except Rejected:
        return False


def own_part(expression: Expression, known: Sketch) -> Expression | None:
    """Return an expression of a partly known ad with the ad's known attributes put in, and folded.

    References to free attributes remain. Return None if the expression grows too large.
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
    """Return whether an expression that `own_part` returned may be true of the completely known ad `other`.

    False if it grows too large.
    """
    whole = _lacking(_known(wanted.tree, other), wanted.other)
    try:
        nodes(whole, "")
    except Rejected:
        return False
    return decided(Expression(fold(whole))) is not False


def reduce(expression: Expression, other: Ad, own: Ad = NOTHING, place: str = "") -> Expression:
    """Return an expression of `own`, partially evaluated over `other`. Attributes that `other` lacks remain as references.

    Over any ad that extends `other` by further attributes, the result has the same value as the whole expression. Raise Rejected,
    with `place`, if it grows too large.
    """
    whole = _known(own.bind(expression).tree, other)
    nodes(whole, place)
    return Expression(fold(whole))


def decided(expression: Expression) -> bool | None:
    """Return True if a partially evaluated requirement is true, False if it can no longer become true, None if that is still open."""
    if isinstance(expression.tree, Literal):
        return expression.tree.value is True
    return False if _never(expression.tree) else None


def _never(node: Node) -> bool:
    """Return whether a node can never count as true."""
    match node:
        case Literal():
            return truth(node.value) is not True
        case Chain():
            return (any if node.operator == "&&" else all)(_never(term) for term in node.terms)
        case Conditional():
            return _never(node.condition if node.yes is None else node.yes) and _never(node.no)
        case _:
            return _has_no_value(node)


def _has_no_value(node: Node) -> bool:
    """Return whether a node is certainly undefined or an error. Most operations on such an operand are undefined or an error too."""
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
    """Return a bound tree of the other ad for an expression of this ad: references to `other` become references to this ad."""
    if isinstance(node, Reference):
        return Reference(NameScope.OWN, node.name) if node.scope is NameScope.OTHER else node
    return with_children(node, _turned)
