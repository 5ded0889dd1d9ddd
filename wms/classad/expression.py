"""Expressions: read once, known by their canonical text, bound to the ad they belong to, and evaluated over another."""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from wms.classad.cost import Cost, TooCostlyError, cost
from wms.classad.engine import compiled
from wms.classad.folding import fold
from wms.classad.parsing import nodes, parse_expression
from wms.classad.tree import Literal, NameScope, Node, Record, Reference, references, walk, with_children
from wms.classad.value import UNDEFINED
from wms.classad.writing import write

if TYPE_CHECKING:
    import classad2

_CACHED = 2_048
_CACHED_BYTES = 2_048

ENVELOPES = (16_384, 256)
"""Sizes in bytes, and steps: an expression is proved once to stay within its limits over attributes within one of these."""


class Expression:
    """An expression of the ClassAd language, frozen; equal when the canonical texts are.

    `other.x` and `TARGET.x` are the other ad's attribute, `MY.x` and `self.x` its own ad's, `x` its own ad's if that has one of
    this name and else the other's; names and words in any case. It is *bound* when it looks at the other ad alone.
    """

    def __init__(self, tree: Node) -> None:
        self._tree: Node | None = tree

    @property
    def tree(self) -> Node:
        """What the text means."""
        return self._tree if self._tree is not None else parse_expression(self.text)

    def shed_tree(self) -> None:
        """Give back the memory of the tree, which is large: whoever wants it has the canonical text parsed again.

        For bound expressions; to evaluate one over ads that do not look back does not take its tree.
        """
        _ = self.text, self.other, self.own, self.bare, self.envelope, self.single
        self._tree = None

    @staticmethod
    def parse(text: str, place: str = "") -> "Expression":
        """Read an expression. Raises Rejected, with the place: what it is read from, line and column."""
        return (
            _parsed(text, place) if len(text) <= _CACHED_BYTES else Expression(parse_expression(text, place))
        )

    @cached_property
    def text(self) -> str:
        """The canonical text: one for all that differ in spaces, brackets, comments and the case of names alone."""
        return write(self.tree, lower=True)

    @cached_property
    def other(self) -> frozenset[str]:
        """What it looks at in the other ad, in lower case; names without a scope are not among them."""
        return references(self.tree, NameScope.OTHER)

    @cached_property
    def own(self) -> frozenset[str]:
        """What it looks at in its own ad, in lower case; names without a scope are not among them."""
        return references(self.tree, NameScope.OWN)

    @cached_property
    def bare(self) -> frozenset[str]:
        """What it looks at in its own ad or else in the other, in lower case."""
        return references(self.tree, NameScope.BARE)

    @property
    def names(self) -> frozenset[str]:
        """All attributes of ads that are free in it, in lower case."""
        return self.other | self.own | self.bare

    @property
    def is_bound(self) -> bool:
        """Whether it looks at the other ad alone."""
        return not (self.own or self.bare)

    def bound(self, own: Mapping[str, Node], place: str = "") -> "Expression":
        """Return the expression with what its own ad says put in and folded; `own` its bound trees by lower-case name.

        What its ad lacks is undefined. Raises Rejected if it grows too large.
        """
        if self.is_bound:
            return self
        whole = substituted(self.tree, own)
        nodes(whole, place)
        return Expression(fold(whole))

    @cached_property
    def envelope(self) -> int:
        """The largest of ENVELOPES whose attributes cannot make it cost too much; 0 for none."""
        return next((size for size in ENVELOPES if self._is_cheap(size)), 0)

    @cached_property
    def single_text(self) -> str | None:
        """The text for an ad of values alone; None if a record in the expression could catch the ad's names."""
        assert self.is_bound, "bind it to its own ad first"
        if any(isinstance(node, Record) for node in walk(self.tree)):
            return None
        return write(self.tree, halved=True, scopes={NameScope.OTHER: "", NameScope.LOCAL: ""})

    @cached_property
    def single(self) -> "classad2.ExprTree | None":
        """The library's tree of that text."""
        return None if self.single_text is None else compiled(self.single_text)

    @cached_property
    def double(self) -> "classad2.ExprTree":
        """The library's tree over two ads that look at each other."""
        return compiled(library_text(self.tree))

    def _is_cheap(self, size: int) -> bool:
        try:
            cost(self.tree, lambda _: Cost(size, size, 8, plain=False))
        except TooCostlyError:
            return False
        return True

    def __str__(self) -> str:
        return write(self.tree)

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def substituted(tree: Node, own: Mapping[str, Node]) -> Node:
    """Return the tree with what its own ad says instead of the references to it; `own` the ad's bound trees."""
    if not isinstance(tree, Reference):
        return with_children(tree, lambda part: substituted(part, own))
    if tree.scope in {NameScope.OTHER, NameScope.LOCAL}:
        return tree
    if tree.key in own:
        return own[tree.key]
    return Literal(UNDEFINED) if tree.scope is NameScope.OWN else Reference(NameScope.OTHER, tree.name)


def library_text(tree: Node) -> str:
    """Return the text of a bound tree for the library, where two ads look at each other."""
    return write(tree, halved=True, scopes={NameScope.OTHER: "TARGET.", NameScope.LOCAL: ""})


@lru_cache(maxsize=_CACHED)
def _parsed(text: str, place: str) -> Expression:
    return Expression(parse_expression(text, place))
