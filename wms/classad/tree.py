"""Trees of ClassAd expressions: the meaning of a text, without its spaces, brackets and spelling.

A chain of && or of || is one node, since both operators are associative for values of any kind. Tests check this for all kinds.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wms.classad.value import Scalar


class NameScope(enum.Enum):
    """The scope of a name: the ad or record in which it is looked up."""

    BARE = ""
    """No scope: the name is looked up in the expression's own ad, and if that lacks it, in the other ad."""
    OWN = "my"
    OTHER = "other"
    LOCAL = "local"
    """A record within the expression, around the name."""


class Literal(Struct, frozen=True, gc=False):
    """A constant: a number, text, boolean, undefined or error."""

    value: Scalar


class Reference(Struct, frozen=True, gc=False):
    """A reference to an attribute; `name` is spelled as written."""

    scope: NameScope
    name: str

    @property
    def key(self) -> str:
        """The name in lower case, for comparison with other names."""
        return self.name.lower()


class Unary(Struct, frozen=True, gc=False):
    """A unary operator, `-`, `+`, `!` or `~`, with its operand."""

    operator: str
    operand: "Node"


class Binary(Struct, frozen=True, gc=False):
    """A binary operator other than && and ||, with its two operands."""

    operator: str
    left: "Node"
    right: "Node"


class Chain(Struct, frozen=True, gc=False):
    """Two or more terms joined by && or by ||; no term is itself a chain of the same operator."""

    operator: str
    terms: "tuple[Node, ...]"


class Conditional(Struct, frozen=True, gc=False):
    """The operator `condition ? yes : no`.

    If `yes` is None it is `condition ?: no`: the value of the condition if that is defined, else of `no`.
    """

    condition: "Node"
    yes: "Node | None"
    no: "Node"


class Call(Struct, frozen=True, gc=False):
    """A function call; the name is spelled as in the module `functions`."""

    function: str
    arguments: "tuple[Node, ...]"


class MemberAccess(Struct, frozen=True, gc=False):
    """An attribute of a record: `record.name`."""

    record: "Node"
    name: str


class Subscript(Struct, frozen=True, gc=False):
    """An element of a list by its number, or an attribute of a record by its name: `container[index]`."""

    container: "Node"
    index: "Node"


class ListOf(Struct, frozen=True, gc=False):
    """A list: `{...}`."""

    items: "tuple[Node, ...]"


class Record(Struct, frozen=True, gc=False):
    """A record: `[...]` within a text."""

    attributes: "tuple[tuple[str, Node], ...]"


Node: TypeAlias = (
    Literal
    | Reference
    | Unary
    | Binary
    | Chain
    | Conditional
    | Call
    | MemberAccess
    | Subscript
    | ListOf
    | Record
)


_PARTS: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    Literal: lambda _: (),
    Reference: lambda _: (),
    Unary: lambda node: (node.operand,),
    Binary: lambda node: (node.left, node.right),
    Chain: lambda node: node.terms,
    Conditional: lambda node: (
        (node.condition, node.no) if node.yes is None else (node.condition, node.yes, node.no)
    ),
    Call: lambda node: node.arguments,
    MemberAccess: lambda node: (node.record,),
    Subscript: lambda node: (node.container, node.index),
    ListOf: lambda node: node.items,
    Record: lambda node: tuple(each for _, each in node.attributes),
}


_OF_NUMBERS = frozenset({"+", "-", "*", "/", "%", "<<", ">>", ">>>"})
"""The operators whose values are numbers."""


def children(node: Node) -> tuple[Node, ...]:
    """Return the child nodes of a node, in the order of the text."""
    return _PARTS[type(node)](node)


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:  # noqa: C901 - a case a kind of node
    """Return a copy of the node in which `change` has replaced each child."""
    match node:
        case Literal() | Reference():
            changed: Node = node
        case Unary():
            changed = Unary(node.operator, change(node.operand))
        case Binary():
            changed = Binary(node.operator, change(node.left), change(node.right))
        case Chain():
            changed = chain(node.operator, [change(each) for each in node.terms])
        case Conditional():
            yes = None if node.yes is None else change(node.yes)
            changed = Conditional(change(node.condition), yes, change(node.no))
        case Call():
            changed = Call(node.function, tuple(change(each) for each in node.arguments))
        case MemberAccess():
            changed = MemberAccess(change(node.record), node.name)
        case Subscript():
            changed = Subscript(change(node.container), change(node.index))
        case ListOf():
            changed = ListOf(tuple(change(each) for each in node.items))
        case Record():
            changed = Record(tuple((name, change(each)) for name, each in node.attributes))
    return changed


def chain(operator: str, terms: "list[Node]") -> Node:
    """Return the chain of terms with nested chains of the same operator merged; for a single term, the term itself."""
    flat: list[Node] = []
    for term in terms:
        flat.extend(split(operator, term))
    return flat[0] if len(flat) == 1 else Chain(operator, tuple(flat))


def split(operator: str, node: Node) -> "tuple[Node, ...]":
    """Return the terms of a chain of this operator, such as the conjuncts for `&&`; for another node, the node alone."""
    return node.terms if isinstance(node, Chain) and node.operator == operator else (node,)


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all its descendants."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(children(each))


def references(node: Node, scope: NameScope) -> frozenset[str]:
    """Return the names, in lower case, of the attributes that a tree references in a scope."""
    return frozenset(each.key for each in walk(node) if isinstance(each, Reference) and each.scope is scope)


def free_locals(node: Node) -> frozenset[str]:
    """Return the names, in lower case, that a tree references in records outside of the tree."""
    if isinstance(node, Reference):
        return frozenset({node.key}) if node.scope is NameScope.LOCAL else frozenset()
    found = frozenset[str]().union(*(free_locals(part) for part in children(node)))
    return found - {name.lower() for name, _ in node.attributes} if isinstance(node, Record) else found


def localised(record: Record) -> Record:
    """Return a record in which references to its own names are looked up in the record, not in an ad."""
    own = {name.lower() for name, _ in record.attributes}

    def local(node: Node) -> Node:
        if isinstance(node, Reference):
            return (
                replace(node, scope=NameScope.LOCAL)
                if node.scope is NameScope.BARE and node.key in own
                else node
            )
        return with_children(node, local)

    return Record(tuple((name, local(each)) for name, each in record.attributes))


def is_no_condition(node: Node) -> bool:
    """Return whether no ad could make this tree true: a number, text, list, record or sum."""
    match node:
        case Literal():
            return not isinstance(node.value, bool)
        case Unary():
            return node.operator != "!"
        case Binary():
            return node.operator in _OF_NUMBERS
        case ListOf() | Record():
            return True
        case _:
            return False
