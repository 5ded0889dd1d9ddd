"""Trees of expressions: what a text means, without its spaces, brackets and spelling.

Chains of && and of || are one node, since both are associative for all kinds of values (tested over all of them).
"""

import enum
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from wms.classad.value import Scalar


class NameScope(enum.Enum):
    """In which ad a name is looked up."""

    BARE = ""
    """Its own ad if that has it, else the other."""
    OWN = "my"
    OTHER = "other"
    LOCAL = "local"
    """A record within the text."""


class Literal(Struct, frozen=True):
    """A value written down."""

    value: Scalar


class Reference(Struct, frozen=True):
    """An attribute of an ad; `name` as written."""

    scope: NameScope
    name: str

    @property
    def key(self) -> str:
        """The name as names are compared."""
        return self.name.lower()


class Unary(Struct, frozen=True):
    """`-`, `+`, `!` or `~` of something."""

    operator: str
    operand: "Node"


class Binary(Struct, frozen=True):
    """An operator between two; not && and ||."""

    operator: str
    left: "Node"
    right: "Node"


class Chain(Struct, frozen=True):
    """Two or more terms between which && stands, or ||; none of them is a chain of the same operator."""

    operator: str
    terms: "tuple[Node, ...]"


class Choice(Struct, frozen=True):
    """`condition ? yes : no`; without `yes`, `condition ?: no`: the first if it is defined, else the other."""

    condition: "Node"
    yes: "Node | None"
    no: "Node"


class Call(Struct, frozen=True):
    """A function of arguments; the name in the spelling of `functions`."""

    function: str
    arguments: "tuple[Node, ...]"


class Select(Struct, frozen=True):
    """An attribute of a record."""

    record: "Node"
    name: str


class Index(Struct, frozen=True):
    """An element of a list, or an attribute of a record by its name."""

    container: "Node"
    index: "Node"


class ListOf(Struct, frozen=True):
    """`{...}`."""

    items: "tuple[Node, ...]"


class Record(Struct, frozen=True):
    """`[...]` within a text."""

    attributes: "tuple[tuple[str, Node], ...]"


Node: TypeAlias = (
    Literal | Reference | Unary | Binary | Chain | Choice | Call | Select | Index | ListOf | Record
)


def children(node: Node) -> tuple[Node, ...]:  # noqa: C901 - a case a kind of node
    """Return the parts of a node, in the order of the text."""
    match node:
        case Literal() | Reference():
            parts: tuple[Node, ...] = ()
        case Unary():
            parts = (node.operand,)
        case Binary():
            parts = (node.left, node.right)
        case Chain():
            parts = node.terms
        case Choice():
            parts = (node.condition, node.no) if node.yes is None else (node.condition, node.yes, node.no)
        case Call():
            parts = node.arguments
        case Select():
            parts = (node.record,)
        case Index():
            parts = (node.container, node.index)
        case ListOf():
            parts = node.items
        case Record():
            parts = tuple(each for _, each in node.attributes)
    return parts


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:  # noqa: C901 - likewise
    """Return the node with each of its parts changed."""
    match node:
        case Literal() | Reference():
            changed: Node = node
        case Unary():
            changed = Unary(node.operator, change(node.operand))
        case Binary():
            changed = Binary(node.operator, change(node.left), change(node.right))
        case Chain():
            changed = chain(node.operator, [change(each) for each in node.terms])
        case Choice():
            yes = None if node.yes is None else change(node.yes)
            changed = Choice(change(node.condition), yes, change(node.no))
        case Call():
            changed = Call(node.function, tuple(change(each) for each in node.arguments))
        case Select():
            changed = Select(change(node.record), node.name)
        case Index():
            changed = Index(change(node.container), change(node.index))
        case ListOf():
            changed = ListOf(tuple(change(each) for each in node.items))
        case Record():
            changed = Record(tuple((name, change(each)) for name, each in node.attributes))
    return changed


def chain(operator: str, terms: "list[Node]") -> Node:
    """Return a chain of terms, those of chains of the same operator among them; the one term if there is but one."""
    flat: list[Node] = []
    for term in terms:
        flat.extend(split(operator, term))
    return flat[0] if len(flat) == 1 else Chain(operator, tuple(flat))


def split(operator: str, node: Node) -> "tuple[Node, ...]":
    """Return the terms between which an operator stands, with && the conjuncts; of anything else itself alone."""
    return node.terms if isinstance(node, Chain) and node.operator == operator else (node,)


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all below it."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(children(each))


def references(node: Node, scope: NameScope) -> frozenset[str]:
    """Return the keys of the attributes that a tree looks at in a scope."""
    return frozenset(each.key for each in walk(node) if isinstance(each, Reference) and each.scope is scope)


def free_locals(node: Node) -> frozenset[str]:
    """Return the keys that a tree looks up in records around it."""
    if isinstance(node, Reference):
        return frozenset({node.key}) if node.scope is NameScope.LOCAL else frozenset()
    found = frozenset[str]().union(*(free_locals(part) for part in children(node)))
    return found - {name.lower() for name, _ in node.attributes} if isinstance(node, Record) else found


def localised(record: Record) -> Record:
    """Return a record in which the names that it has itself are looked up in it, and not in an ad."""
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
