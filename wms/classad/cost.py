"""Upper bounds of the size of an evaluation's value and of its work, computed from its tree before it begins.

No value is larger than the values of which it is made, except lists written as texts, whose quotes are escaped. The library has a
limit of its own: ten million steps, which take half a second.
"""

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeAlias

from wms.classad.functions import FUNCTIONS, PATTERN_FIRST
from wms.classad.limits import EVALUATION_DEPTH, VALUE_BYTES, WORK
from wms.classad.patterns import power
from wms.classad.string_lists import MEMBERSHIP
from wms.classad.tree import (
    Binary,
    Call,
    Chain,
    ListOf,
    Literal,
    NameScope,
    Node,
    Record,
    Reference,
    Unary,
    children,
    free_locals,
)
from wms.classad.value import Scalar

_NUMBER = 24
"""The most bytes that the text of a number takes."""


class Cost(NamedTuple):
    """The upper bounds of one evaluation."""

    size: int
    """The bytes of the value, written as a text."""
    work: int
    """The steps of the evaluation, plus the bytes that they touch."""
    depth: int
    plain: bool
    """Whether the value is neither a list nor a record."""


CostOf: TypeAlias = Callable[[Reference], Cost]

UNKNOWN = Cost(_NUMBER, 1, 1, plain=True)


class TooCostlyError(Exception):
    """An evaluation could exceed a limit, and is therefore not begun; the text names the limit."""


def cost(node: Node, of: CostOf, depth: int = 0) -> Cost:
    """Return the upper bounds of evaluating a tree; `of` returns those of a referenced attribute.

    `depth` is the number of levels around the tree. Raise TooCostlyError if a limit could be exceeded.
    """
    if depth > EVALUATION_DEPTH:
        raise TooCostlyError(f"more than {EVALUATION_DEPTH} levels deep")
    if isinstance(node, Literal):
        return Cost(_written(node.value), 1, 1, plain=True)
    if isinstance(node, Reference):
        return _checked(of(node))
    if isinstance(node, Record):
        return _checked(_record(node, of, depth))
    parts = [cost(each, of, depth + 1) for each in children(node)]
    return _checked(_whole(node, parts))


def _written(value: Scalar) -> int:
    if isinstance(value, str):
        return len(value.encode()) + 2
    return len(str(value)) if isinstance(value, int) else _NUMBER


def _whole(node: Node, parts: list[Cost]) -> Cost:
    size = sum(part.size for part in parts)
    work = sum(part.work for part in parts) + size + 1
    deep = max((part.depth for part in parts), default=0) + 1
    match node:
        case Call():
            return _called(node, parts, size, work, deep)
        case ListOf():
            return Cost(size + 4 * len(parts) + 4, work, deep, plain=False)
        case Unary() | Binary() | Chain():
            return Cost(_NUMBER, work, deep, plain=True)
        case _:
            return Cost(max(size, _NUMBER), work, deep, plain=all(part.plain for part in parts))


def _record(node: Record, of: CostOf, depth: int) -> Cost:
    """Return the cost of all attributes of a record, which may reference each other.

    Raise TooCostlyError if they form a circle.
    """
    trees = {name.lower(): tree for name, tree in node.attributes}
    known: dict[str, Cost] = {}

    def within(reference: Reference) -> Cost:
        return (
            known[reference.key]
            if reference.scope is NameScope.LOCAL and reference.key in trees
            else of(reference)
        )

    try:
        for key in TopologicalSorter(
            {key: free_locals(tree) & trees.keys() for key, tree in trees.items()}
        ).static_order():
            known[key] = cost(trees[key], within, depth + 1)
    except CycleError as error:
        raise TooCostlyError(
            f"a record's attributes look at each other in a circle, at {error.args[1][0]}"
        ) from None
    size = sum(part.size + len(key) + 8 for key, part in known.items())
    deep = max((part.depth for part in known.values()), default=0) + 1
    return Cost(size, sum(part.work for part in known.values()) + size + 1, deep, plain=False)


def _called(node: Call, parts: list[Cost], size: int, work: int, deep: int) -> Cost:
    gives = FUNCTIONS[node.function.lower()].gives
    if gives == "text":
        # Each list that becomes a text may double its escapes, each of four digits.
        written = sum(part.size * (1 if part.plain else 4) for part in parts)
        return Cost(written + _NUMBER, work + written, deep, plain=True)
    if node.function in PATTERN_FIRST:
        pattern = node.arguments[0]
        assert isinstance(pattern, Literal)
        assert isinstance(pattern.value, str)
        return Cost(_NUMBER, work + parts[1].size ** power(pattern.value, ""), deep, plain=True)
    if node.function == "stringListsIntersect":
        work += parts[0].size * parts[1].size
    if node.function in MEMBERSHIP:
        # Its arguments are evaluated up to four times, and the list is written twice more.
        return Cost(_NUMBER, 4 * work + 8 * size, deep + 6, plain=True)
    if gives == "any" or node.function in {"sum", "avg", "min", "max"}:
        return Cost(max(size, _NUMBER), work, deep, plain=False)
    return Cost(_NUMBER, work, deep, plain=True)


def _checked(found: Cost) -> Cost:
    if found.size > VALUE_BYTES:
        raise TooCostlyError(f"a value could have more than {VALUE_BYTES:,} bytes")
    if found.work > WORK:
        raise TooCostlyError(f"more than {WORK:,} steps could be needed")
    if found.depth > EVALUATION_DEPTH:
        raise TooCostlyError(f"more than {EVALUATION_DEPTH} levels deep")
    return found
