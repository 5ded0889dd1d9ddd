"""Writes trees of expressions as text, with as few brackets as the meaning needs and one spelling for equal trees."""

import re

from wms.classad.grammar import LEVELS
from wms.classad.string_lists import MEMBERSHIP, library_form
from wms.classad.tree import (
    Binary,
    Call,
    Chain,
    Conditional,
    ListOf,
    Literal,
    MemberAccess,
    NameScope,
    Node,
    Record,
    Reference,
    Subscript,
    Unary,
)
from wms.classad.value import Scalar, Special

_CHOICE, _UNARY, _POSTFIX = 0, 11, 12
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_FEW = 16
"""The most terms of a chain that are written in a row.

A longer chain is bracketed by halves, since the library limits nesting levels.
"""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_ESCAPED = re.compile('["\\\\\x01-\x1f\x7f]')


def write(
    tree: Node, *, lower: bool = False, halved: bool = False, scopes: dict[NameScope, str] | None = None
) -> str:
    """Return the text of a tree.

    If `lower` is True, names are in lower case, for use as keys. If `halved` is True, the text is for the library: long
    chains are bracketed by halves, and the functions that it lacks are written with others. `scopes` has the prefix of names
    in each scope (None: `SCOPES`).
    """
    return _Writer(lower, halved, scopes or SCOPES)(tree)


SCOPES = {NameScope.BARE: "", NameScope.LOCAL: "", NameScope.OWN: "my.", NameScope.OTHER: "other."}


class _Writer:
    def __init__(self, lower: bool, halved: bool, scopes: dict[NameScope, str]) -> None:  # noqa: FBT001 - as above
        self._lower, self._halved, self._scopes = lower, halved, scopes

    def __call__(self, node: Node, least: int = _CHOICE) -> str:
        """Return the text of a node, in brackets if its operator has a lower precedence than `least`."""
        text, level = self._written(node)
        return f"({text})" if level < least else text

    def _written(self, node: Node) -> tuple[str, int]:  # noqa: PLR0911 - a case a kind of node
        match node:
            case Literal():
                negative = type(node.value) in {int, float} and str(node.value).startswith("-")
                return literal(node.value), _UNARY if negative else _POSTFIX
            case Reference():
                return self._scopes[node.scope] + self._name(node.name), _POSTFIX
            case Unary():
                return f"{node.operator}{self(node.operand, _UNARY)}", _UNARY
            case Binary():
                level = LEVELS[node.operator]
                return f"{self(node.left, level)} {node.operator} {self(node.right, level + 1)}", level
            case Chain():
                return self._chain(node.operator, node.terms), LEVELS[node.operator]
            case Conditional():
                return self._choice(node), _CHOICE
            case _:
                return self._closed(node), _POSTFIX

    def _closed(self, node: Node) -> str:
        """Return the text of a node that needs no brackets around it, such as a call, a list or a record."""
        match node:
            case Call() if self._halved and node.function in MEMBERSHIP:
                return f"({self(library_form(node))})"
            case Call():
                name = node.function.lower() if self._lower else node.function
                return f"{name}({self._listed(node.arguments)})"
            case MemberAccess():
                # A number's full stop would be part of it.
                least = _POSTFIX + isinstance(node.record, Literal)
                return f"{self(node.record, least)}.{self._name(node.name)}"
            case Subscript():
                return f"{self(node.container, _POSTFIX)}[{self(node.index)}]"
            case ListOf():
                return f"{{{self._listed(node.items)}}}"
            case Record():
                return (
                    "["
                    + "; ".join(f"{self._name(name)} = {self(each)}" for name, each in node.attributes)
                    + "]"
                )
            case _:
                raise AssertionError(node)

    def _chain(self, operator: str, terms: tuple[Node, ...]) -> str:
        if self._halved and len(terms) > _FEW:
            half = len(terms) // 2
            return (
                f"({self._chain(operator, terms[:half])}) {operator} ({self._chain(operator, terms[half:])})"
            )
        return f" {operator} ".join(self(each, LEVELS[operator] + 1) for each in terms)

    def _choice(self, node: Conditional) -> str:
        if node.yes is None:
            # It binds closer than all others, which nobody expects: brackets say what is meant.
            return f"{self(node.condition, _POSTFIX)} ?: {self(node.no, _POSTFIX)}"
        return f"{self(node.condition, _CHOICE + 1)} ? {self(node.yes)} : {self(node.no)}"

    def _listed(self, nodes: tuple[Node, ...]) -> str:
        return ", ".join(self(each) for each in nodes)

    def _name(self, name: str) -> str:
        name = name.lower() if self._lower else name
        if _PLAIN.fullmatch(name):
            return name
        escaped = name.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"


def literal(value: Scalar) -> str:
    """Return the text of a value. A real number has all its digits, so that reading the text gives the same number."""
    match value:
        case Special():
            return value.value
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + _ESCAPED.sub(_escape, value) + '"'
        case float():
            return repr(value)
        case int():
            return str(value)


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\{ord(found[0]):03o}"
