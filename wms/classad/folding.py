"""Folding: each part of an expression whose value is already certain is replaced by this value. The meaning stays the same.

The library evaluates the parts without references. `&&` and `||` follow the library's tables, from the left: false && anything is
false, true || anything is true. A number counts as true unless it is 0. A text or list as an operand makes the result an error,
whatever follows it.
"""

from wms.classad import engine
from wms.classad.cost import UNKNOWN, TooCostlyError, cost
from wms.classad.functions import FUNCTIONS
from wms.classad.tree import (
    Binary,
    Call,
    Chain,
    Conditional,
    ListOf,
    Literal,
    Node,
    Record,
    Reference,
    Unary,
    chain,
    children,
    with_children,
)
from wms.classad.value import ERROR, UNDEFINED, RecordText, Special, Value
from wms.classad.writing import write

_TRUTHS = frozenset({"!", "==", "!=", "is", "isnt", "<", "<=", ">", ">="})


def fold(tree: Node) -> Node:
    """Return the tree with each part whose value is certain replaced by this value."""
    if isinstance(tree, Literal | Reference | Record):
        return tree
    folded = with_children(tree, fold)
    if isinstance(folded, Chain):
        return _chain(folded)
    if isinstance(folded, Conditional):
        return _choice(folded)
    return _evaluated(folded)


def is_truth(node: Node) -> bool:
    """Return whether a node's value can only be a boolean, undefined or an error."""
    match node:
        case Literal():
            return isinstance(node.value, bool | Special)
        case Unary() | Binary():
            return node.operator in _TRUTHS
        case Call():
            return FUNCTIONS[node.function.lower()].gives == "truth"
        case Conditional():
            return node.yes is not None and is_truth(node.yes) and is_truth(node.no)
        case _:
            return isinstance(node, Chain)


def truth(value: Value) -> Value:
    """Return the boolean, undefined or error that a value counts as in `&&` and `||`."""
    if isinstance(value, str | tuple):
        return ERROR
    return bool(value) if isinstance(value, int | float) else value


def constant(node: Node) -> bool:
    """Return whether a node is a constant: a scalar, or a list of constants."""
    return isinstance(node, Literal) or (isinstance(node, ListOf) and all(map(constant, node.items)))


def as_node(value: Value) -> Node | None:
    """Return the tree of a value; None for a record, an infinity or NaN, which no tree can express."""
    if isinstance(value, tuple):
        items = [as_node(each) for each in value]
        return ListOf(tuple(each for each in items if each is not None)) if None not in items else None
    if isinstance(value, RecordText) or (isinstance(value, float) and value - value != 0.0):
        return None
    return Literal(value)


def _evaluated(node: Node) -> Node:
    """Return the value of a node whose parts are all constants, as a tree; return any other node unchanged."""
    if isinstance(node, ListOf) or not all(constant(part) for part in children(node)):
        return node
    try:
        cost(node, lambda _: UNKNOWN)
    except TooCostlyError:
        return node
    return as_node(engine.nothing().evaluate(write(node, halved=True))) or node


def _choice(node: Conditional) -> Node:
    if not constant(node.condition):
        return node.condition if _is_itself(node) else node
    if not isinstance(node.condition, Literal):
        return Literal(ERROR) if node.yes is not None else node.condition
    if node.yes is None:
        return node.no if node.condition.value is UNDEFINED else node.condition
    met = truth(node.condition.value)
    return (
        node.yes
        if met is True
        else node.no
        if met is False
        else Literal(ERROR if met is ERROR else UNDEFINED)
    )


def _is_itself(node: Conditional) -> bool:
    """Return whether a choice is `condition ? true : false`, so that it equals its condition.

    The condition must be a boolean, undefined or error.
    """
    match node:
        case Conditional(condition=condition, yes=Literal(value=yes), no=Literal(value=no)):
            return yes is True and no is False and is_truth(condition)
        case _:
            return False


def _chain(node: Chain) -> Node:
    """Return a chain (terms joined by && or ||) without terms that do not matter: neutral ones, and all after a term that decides it."""
    decides = node.operator == "||"
    kept: list[Node] = []
    for term in node.terms:
        if not constant(term):
            kept.append(term)
            continue
        met = truth(term.value) if isinstance(term, Literal) else ERROR
        if met is UNDEFINED:
            kept.append(Literal(UNDEFINED))
        elif met is ERROR or met is decides:
            kept.append(Literal(met))
            break
    if not kept:
        return Literal(not decides)
    if len(kept) == 1 and not is_truth(kept[0]):
        # A number alone would not become true or false.
        kept.insert(0, Literal(not decides))
    return _settled(node.operator, kept)


def _settled(operator: str, kept: list[Node]) -> Node:
    """Return the folded chain of the terms `kept`, with the constants first.

    If the first term is an error, the whole chain is that error.
    """
    if isinstance(kept[0], Literal) and kept[0].value is ERROR:
        return kept[0]
    if all(isinstance(each, Literal) for each in kept):
        # Undefined terms, and at most one behind them that decides.
        return kept[-1]
    return chain(operator, kept)
