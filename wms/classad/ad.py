"""Ads: attributes with values or expressions, read from either syntax of the language or made of Python's values.

When an ad is made, references between its own attributes are replaced by the referenced trees, and the result is folded. An attribute
is then *closed* and has its value, or *open*: it references the other ad. An expression over closed attributes is evaluated twenty
times faster than one over two ads that reference each other. Nearly all attributes are closed.
"""

import weakref
from collections.abc import Iterable, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeAlias

from wms.classad.cost import UNKNOWN, Cost, TooCostlyError, cost
from wms.classad.engine import Values, library_ad
from wms.classad.expression import ENVELOPES, Expression, library_text, substituted
from wms.classad.folding import constant, fold
from wms.classad.grammar import name_checked
from wms.classad.limits import AD_NODES, RECORDS, refused
from wms.classad.parsing import Attributes, nodes, parse_ad, parse_old_ad
from wms.classad.tokens import checked
from wms.classad.tree import (
    ListOf,
    Literal,
    NameScope,
    Node,
    Record,
    Reference,
    localised,
    references,
    with_children,
)
from wms.classad.value import UNDEFINED, Scalar, Special, Value
from wms.classad.writing import write
from wms.errors import shown

if TYPE_CHECKING:
    import classad2

Given: TypeAlias = "bool | int | float | str | Special | Expression | list[Given] | tuple[Given, ...] | Mapping[str, Given] | None"
"""A Python value of which an attribute can be made; None stands for undefined."""


class Ad:
    """An immutable ClassAd. Two ads are equal if their canonical texts are. Names of attributes are compared in lower case."""

    def __init__(self, attributes: Attributes, place: str = "") -> None:
        self._place = place
        self._written = {name.lower(): (name, tree) for name, tree in attributes}
        self._bound: dict[str, Node] = {}
        self._costs: dict[str, Cost] = {}
        self._views: dict[str, str] = {}
        self._nodes = 0
        for key in self._ordered():
            self._bind(key)
        self.open = frozenset(
            key
            for key, tree in self._bound.items()
            if not constant(tree) and references(tree, NameScope.OTHER)
        )
        """The names of the attributes that reference the other ad, in lower case."""

    @staticmethod
    def parse(text: str, place: str = "") -> "Ad":
        """Return the ad that a text describes: in the new syntax if it begins with `[` or a comment, else in the old.

        `place` names the source of the text in errors. Raise Rejected if the text is no ad.
        """
        new = text.lstrip().startswith(("[", "/"))
        return Ad(parse_ad(text, place) if new else parse_old_ad(text, place), place)

    @staticmethod
    def of(values: "Mapping[str, Given]", place: str = "") -> "Ad":
        """Return an ad of Python values by attribute name.

        Raise Rejected, with `place` in the message, for a value that no attribute can have.
        """
        attributes = _attributes(values, place, 1)
        nodes(Record(attributes), place)
        return Ad(attributes, place)

    @cached_property
    def text(self) -> str:
        """The canonical text of the ad, in the new syntax, with the names in lower case and sorted."""
        ordered = sorted((key, tree) for key, (_, tree) in self._written.items())
        return write(Record(tuple(ordered)), lower=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes, spelled as written."""
        return tuple(name for name, _ in self._written.values())

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._written

    def expression(self, name: str) -> Expression | None:
        """Return an attribute's expression as it was written; None if the ad lacks the attribute."""
        found = self._written.get(name.lower())
        return None if found is None else Expression(found[1])

    def inner(self, name: str) -> "Ad | None":
        """Return the ad that is an attribute's value, such as `info` of a GLUE ad; None if the value is no record."""
        found = self._written.get(name.lower())
        if found is None or not isinstance(found[1], Record):
            return None
        own = frozenset(each.lower() for each, _ in found[1].attributes)
        return Ad(tuple((each, _outward(tree, own)) for each, tree in found[1].attributes), self._place)

    def bound(self, name: str) -> Expression | None:
        """Return an attribute's expression with the ad's own attributes put in, and folded; None if the ad lacks the attribute."""
        tree = self._bound.get(name.lower())
        return None if tree is None else Expression(tree)

    def bind(self, expression: Expression) -> Expression:
        """Return an expression with this ad's attributes put in, and folded, as if it were an attribute of this ad."""
        return expression.bound(self._bound, self._place)

    @cached_property
    def requirements(self) -> Expression | None:
        """The bound expression of the attribute `Requirements`.

        None if the ad lacks the attribute; it then accepts every other ad.
        """
        return self.bound("requirements")

    @cached_property
    def rank(self) -> Expression | None:
        """The bound expression of the attribute `Rank`. None if the ad lacks the attribute; it then prefers no ad to others."""
        return self.bound("rank")

    def view(self, names: frozenset[str]) -> tuple[str | None, ...]:
        """Return the canonical texts of the named attributes, sorted by name; None for each missing one.

        Two ads with equal views give equal results to any expression that references these names alone. The text of an open attribute
        is its expression, over the ad to which the evaluated expression belongs.
        """
        return tuple(map(self._seen, sorted(names)))

    def _seen(self, key: str) -> str | None:
        found = self._views.get(key)
        if found is None and (tree := self._bound.get(key)) is not None:
            found = self._views[key] = write(tree, lower=True)
        return found

    def tree(self, key: str) -> Node | None:
        """Return the bound tree of an attribute by its name in lower case; None if the ad lacks it."""
        return self._bound.get(key)

    def cost(self, key: str) -> Cost:
        """Return the evaluation cost of a closed attribute by its name in lower case; `UNKNOWN` if the ad lacks it."""
        return self._costs.get(key, UNKNOWN)

    @cached_property
    def special(self) -> dict[int, frozenset[str]]:
        """By envelope (a bound on the cost of an attribute): the names, in lower case, of the attributes that are open or exceed it."""
        beyond = {
            size: {key for key, each in self._costs.items() if _is_beyond(each, size)} for size in ENVELOPES
        }
        return {size: self.open | keys for size, keys in beyond.items()}

    @cached_property
    def values(self) -> Values:
        """The closed attributes as an ad of the library, over which expressions of other ads can be evaluated."""
        lent = Values()
        for key, tree in self._bound.items():
            if constant(tree):
                lent[key] = as_value(tree)
            elif key not in self.open:
                lent.put(key, library_text(tree))
        # It is lent as long as this ad is there; what is left at the end of the process need not be given back.
        weakref.finalize(self, lent.empty).atexit = False
        return lent

    @cached_property
    def whole(self) -> "classad2.ClassAd":
        """All attributes, including open ones, as an ad of the library, for evaluation together with another ad."""
        return library_ad(library_text(Record(tuple(self._bound.items()))))

    def __str__(self) -> str:
        return write(Record(tuple(self._written.values())))

    def __repr__(self) -> str:
        return f"Ad({shown(str(self), 200)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ad) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def _ordered(self) -> Iterable[str]:
        """Return the names of the attributes in lower case, each after all attributes that it references.

        Raise Rejected if attributes reference each other in a circle.
        """
        grown = {key: tree for key, (_, tree) in self._written.items() if not constant(tree)}
        looks = {
            key: (references(tree, NameScope.BARE) | references(tree, NameScope.OWN)) & grown.keys()
            for key, tree in grown.items()
        }
        try:
            return (
                *(key for key in self._written if key not in grown),
                *TopologicalSorter(looks).static_order(),
            )
        except CycleError as error:
            circle = " -> ".join(reversed(error.args[1]))
            raise refused(
                "CIRCLE", f"attributes that look at each other in a circle: {circle}", self._place
            ) from None

    def _bind(self, key: str) -> None:
        tree = self._written[key][1]
        try:
            found = cost(tree, self._cost_here)
            if not constant(tree):
                tree = self._folded(key, tree)
                # Its values are known now: those of lists and texts are seldom as large as they could have been.
                found = cost(tree, self._cost_here)
        except TooCostlyError as error:
            raise refused("TOO_COSTLY", str(error), self._at(key)) from None
        self._bound[key], self._costs[key] = tree, found

    def _folded(self, key: str, tree: Node) -> Node:
        whole = substituted(tree, self._bound)
        self._nodes += nodes(whole, self._at(key))
        if self._nodes > AD_NODES:
            raise refused("TOO_LARGE", "what attributes say of each other grows too large", self._at(key))
        return fold(whole)

    def _at(self, key: str) -> str:
        return f"{self._place}{', ' if self._place else ''}attribute {shown(self._written[key][0], 60)}"

    def _cost_here(self, reference: Reference) -> Cost:
        return UNKNOWN if reference.scope is NameScope.OTHER else self._costs.get(reference.key, UNKNOWN)


def as_value(tree: Node) -> Value:
    """Return the value of a constant tree: a scalar, or a tuple for a list."""
    if isinstance(tree, ListOf):
        return tuple(as_value(each) for each in tree.items)
    assert isinstance(tree, Literal)
    return tree.value


def _is_beyond(each: Cost, size: int) -> bool:
    return each.size > size or each.work > size or each.depth > 8


def _outward(node: Node, own: frozenset[str]) -> Node:
    """Return a part of a record that becomes an ad: references to the record's own names (`own`) become references to that ad."""
    if isinstance(node, Reference):
        return (
            Reference(NameScope.BARE, node.name)
            if node.scope is NameScope.LOCAL and node.key in own
            else node
        )
    if isinstance(node, Record):
        own = own - {name.lower() for name, _ in node.attributes}
    return with_children(node, lambda part: _outward(part, own))


def _attributes(values: "Mapping[str, Given]", place: str, depth: int) -> Attributes:
    found: dict[str, tuple[str, Node]] = {}
    for name, value in values.items():
        at = f"{place}{', ' if place else ''}attribute {name!s:.60}"
        if name_checked(name, at).lower() in found:
            raise refused("TWICE", "the attribute is given twice", at)
        found[name.lower()] = (name, _node(value, at, depth + 1))
    return tuple(found.values())


def _node(value: "Given", place: str, depth: int) -> Node:
    if depth > RECORDS:
        raise refused("TOO_DEEP", f"more than {RECORDS} levels of tables and lists in each other", place)
    match value:
        case list() | tuple():
            return ListOf(tuple(_node(each, place, depth + 1) for each in value))
        case Mapping():
            return localised(Record(_attributes(value, place, depth)))
        case Expression():
            return value.tree
        case _:
            return Literal(_scalar(value, place))


def _scalar(value: object, place: str) -> Scalar:
    match value:
        case None:
            return UNDEFINED
        case Special() | bool():
            return value
        case str():
            return checked(value, place)
        case int() | float():
            return _number(value, place)
        case _:
            raise refused("VALUE", f"a {type(value).__name__} cannot be an attribute", place)


def _number(value: float, place: str) -> int | float:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise refused("OVERFLOW", "a whole number of more than 64 bits", place)
    if isinstance(value, float) and value - value != 0.0:
        raise refused("OVERFLOW", f"{value} is no number to reckon with", place)
    return value
