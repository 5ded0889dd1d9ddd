"""Expressions: parsed once, compared by their canonical text, bound to their own ad, and evaluated over another ad."""

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
_CACHED_LONG = 32
"""How many longer texts are cached. A plan judges each at one element after the other, and a parsed one takes a hundred times more memory."""

ENVELOPES = (16_384, 256)
"""Two bounds on the cost of each attribute that an expression references: its size in bytes, and its work in steps.

For each bound it is computed once whether an expression stays within its own limits if all these attributes stay within the bound.
"""


class Expression:
    """An immutable expression of the ClassAd language. Two expressions are equal if their canonical texts are.

    `other.x` and `TARGET.x` are attributes of the other ad, `MY.x` and `self.x` those of the expression's own ad. Without a scope,
    `x` is the attribute of its own ad if that ad has it, else of the other ad. Names and words may be in any case. A *bound*
    expression references the other ad alone.
    """

    def __init__(self, tree: Node) -> None:
        self._tree: Node | None = tree

    @property
    def tree(self) -> Node:
        """The tree of the expression."""
        return self._tree if self._tree is not None else parse_expression(self.text)

    def shed_tree(self) -> None:
        """Free the memory of the tree, which is large; the next access parses the canonical text again.

        Meant for bound expressions: their evaluation over ads without open attributes needs no tree.
        """
        _ = self.text, self.other, self.own, self.bare, self.envelope, self.single
        self._tree = None

    @staticmethod
    def parse(text: str, place: str = "") -> "Expression":
        """Return the expression of a text.

        Raise Rejected if the text is no expression; the message names `place`, line and column.
        """
        return _parsed(text, place) if len(text) <= _CACHED_BYTES else _parsed_long(text, place)

    @cached_property
    def text(self) -> str:
        """The canonical text: equal for expressions that differ only in spaces, brackets, comments and the case of names."""
        return write(self.tree, lower=True)

    @cached_property
    def other(self) -> frozenset[str]:
        """The names, in lower case, that the expression references with the scope of the other ad."""
        return references(self.tree, NameScope.OTHER)

    @cached_property
    def own(self) -> frozenset[str]:
        """The names, in lower case, that the expression references with the scope of its own ad."""
        return references(self.tree, NameScope.OWN)

    @cached_property
    def bare(self) -> frozenset[str]:
        """The names, in lower case, that the expression references without a scope. Its own ad has precedence over the other ad."""
        return references(self.tree, NameScope.BARE)

    @property
    def names(self) -> frozenset[str]:
        """The names of all ad attributes that the expression references in any scope, in lower case."""
        return self.other | self.own | self.bare

    @property
    def is_bound(self) -> bool:
        """Whether the expression references the other ad alone."""
        return not (self.own or self.bare)

    def bound(self, own: Mapping[str, Node], place: str = "") -> "Expression":
        """Return the expression with the attributes of its own ad put in, and folded.

        `own` holds their bound trees by lower-case name. A reference with the scope `MY` to an attribute that the own ad
        lacks becomes undefined; one without a scope becomes a reference to the other ad. Raise Rejected if the expression grows too
        large; the error names `place`, where the expression stands.
        """
        if self.is_bound:
            return self
        whole = substituted(self.tree, own)
        nodes(whole, place)
        return Expression(fold(whole))

    @cached_property
    def envelope(self) -> int:
        """The largest bound in ENVELOPES under which the evaluation stays within its limits; 0 if there is none.

        It holds if the cost of all attributes that the expression references stays within the bound.
        """
        return next((size for size in ENVELOPES if self._is_cheap(size)), 0)

    @cached_property
    def single_text(self) -> str | None:
        """The text for evaluation as part of the other ad, if that has values alone. None if the expression contains a record.

        Names in a record could be mistaken for names of that ad.
        """
        assert self.is_bound, "bind it to its own ad first"
        if any(isinstance(node, Record) for node in walk(self.tree)):
            return None
        return write(self.tree, halved=True, scopes={NameScope.OTHER: "", NameScope.LOCAL: ""})

    @cached_property
    def single(self) -> "classad2.ExprTree | None":
        """The library's compiled tree of `single_text`; None if there is no such text."""
        return None if self.single_text is None else compiled(self.single_text)

    @cached_property
    def double(self) -> "classad2.ExprTree":
        """The library's compiled tree for evaluation over two ads that reference each other."""
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
    """Return the tree with references to its own ad replaced by the ad's bound trees `own`, keyed by lower-case name."""
    if not isinstance(tree, Reference):
        return with_children(tree, lambda part: substituted(part, own))
    if tree.scope in {NameScope.OTHER, NameScope.LOCAL}:
        return tree
    if tree.key in own:
        return own[tree.key]
    return Literal(UNDEFINED) if tree.scope is NameScope.OWN else Reference(NameScope.OTHER, tree.name)


def library_text(tree: Node) -> str:
    """Return the text of a bound tree in the library's syntax, for evaluation over two ads that reference each other."""
    return write(tree, halved=True, scopes={NameScope.OTHER: "TARGET.", NameScope.LOCAL: ""})


def _parse(text: str, place: str) -> Expression:
    return Expression(parse_expression(text, place))


_parsed = lru_cache(maxsize=_CACHED)(_parse)
_parsed_long = lru_cache(maxsize=_CACHED_LONG)(_parse)
