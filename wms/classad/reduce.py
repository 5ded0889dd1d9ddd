"""Partial evaluation: what another ad decides of an expression is folded away, and what it says nothing of is left.

So a computing element's ad decides its part of a job's requirements, and what is left about the host goes to the batch
system. Unlike in a match, an attribute that the ad lacks is not undefined: it is not known yet.
"""

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import fold, truth
from wms.classad.match import NOTHING
from wms.classad.parsing import nodes
from wms.classad.tree import Chain, Choice, Literal, Node, Reference, Scope, with_children


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
            return False


def _known(node: Node, other: Ad) -> Node:
    if not isinstance(node, Reference):
        return with_children(node, lambda part: _known(part, other))
    tree = other.tree(node.key) if node.scope is Scope.OTHER else None
    return node if tree is None else _turned(tree)


def _turned(node: Node) -> Node:
    """Return a bound tree of the other ad as it reads from this one: its other is we."""
    if isinstance(node, Reference):
        return Reference(Scope.OWN, node.name) if node.scope is Scope.OTHER else node
    return with_children(node, _turned)
