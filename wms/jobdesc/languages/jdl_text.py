"""Parses the job description language of EGEE and DIRAC: a ClassAd, whose outer brackets DIRAC leaves out.

Comments begin with `#` or `//`, or stand between `/*` and `*/`. Names in lists may stand without quotes, as DIRAC's manual writes them.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from wms.classad.parsing import parse_ad
from wms.classad.tokens import tokens
from wms.classad.tree import ListOf, Literal, MemberAccess, Node, Record, Reference, Unary
from wms.classad.value import Special
from wms.classad.writing import write
from wms.errors import Rejected
from wms.jobdesc.document import unreadable

Plain: TypeAlias = bool | int | float | str

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|(?:#|//)[^\n]*|/\*.*?\*/', re.DOTALL)
# DIRAC's manual writes the number `0.`, which no ClassAd knows.
_POINT = re.compile(r'("(?:[^"\\]|\\.)*")|\b([0-9]+)\.(?=\s*[;,})\]])', re.DOTALL)
# DIRAC names the lists of several parameters `Parameters.name`, which is no name in a ClassAd unless it is quoted.
_DOTTED = re.compile(
    r'("(?:[^"\\]|\\.)*")|\b(Parameter(?:s|Start|Step|Factor)\.[A-Za-z_][A-Za-z0-9_]*)(?=\s*=[^=])',
    re.DOTALL | re.IGNORECASE,
)
_OPENING = frozenset("[{(")
_CLOSING = frozenset("]})")


class JdlAttribute(msgspec.Struct, frozen=True):
    """An attribute of a job description in JDL, with its expression and its line number."""

    name: str
    node: Node
    line: int

    @property
    def key(self) -> str:
        """The name of the attribute in lower case."""
        return self.name.lower()

    @property
    def text(self) -> str:
        """The expression of the attribute as text."""
        return write(self.node)

    @property
    def value(self) -> Plain | None:
        """The value if the expression is a literal text, number or boolean; else None."""
        return _plain(self.node)

    @property
    def texts(self) -> list[str] | None:
        """The values of a list, or the single value, as texts; None if one of them is no literal.

        DIRAC's texts of several names, separated by `;` or `,`, are not split here.
        """
        nodes = self.node.items if isinstance(self.node, ListOf) else (self.node,)
        values = [_plain(each) for each in nodes]
        return [_as_text(each) for each in values if each is not None] if None not in values else None

    @property
    def names(self) -> list[str] | None:
        """The names in a list, or the single name, with or without quotes; None if there is anything else.

        DIRAC's texts of several names, separated by `;` or `,`, are split.
        """
        nodes = self.node.items if isinstance(self.node, ListOf) else (self.node,)
        words = [write(each) if _is_word(each) else _plain(each) for each in nodes]
        return None if None in words else split([_as_text(each) for each in words if each is not None])

    @property
    def records(self) -> "list[list[JdlAttribute]] | None":
        """The nodes of a job collection, each as a list of its attributes; None if the expression is no list of records."""
        nodes = self.node.items if isinstance(self.node, ListOf) else ()
        if not nodes or not all(isinstance(each, Record) for each in nodes):
            return None
        return [
            [JdlAttribute(name, node, self.line) for name, node in each.attributes]
            for each in nodes
            if isinstance(each, Record)
        ]


def parse(text: str) -> list[JdlAttribute]:
    """Return the attributes of a job description in JDL.

    Raise InvalidDescription if the text is no JDL.
    """
    commented = _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
    commented = _POINT.sub(lambda found: found[1] or f"{found[2]}.0", commented)
    plain = _DOTTED.sub(lambda found: found[1] or f"'{found[2]}'", commented).strip()
    inner = plain.removesuffix(";").rstrip()
    lead = commented[: len(commented) - len(commented.lstrip())].count("\n")
    whole = inner if inner.startswith("[") else f"[{plain}]"
    try:
        attributes = parse_ad(whole)
        lines = _lines(whole)
    except Rejected as fault:
        raise unreadable(f"is not JDL: {fault.message}", remedy=fault.remedy) from None
    return [JdlAttribute(name, node, lead + lines.get(name.lower(), 1)) for name, node in attributes]


def _lines(text: str) -> dict[str, int]:
    """Return the line number (from 1) of each attribute of the outermost record, by the attribute's name in lower case."""
    found, depth, before = dict[str, int](), list[str](), None
    for token in tokens(text, ""):
        if token.kind in _OPENING:
            depth.append(token.kind)
        elif token.kind in _CLOSING and depth:
            depth.pop()
        elif token.kind == "=" and len(depth) == 1 and before is not None:
            found.setdefault(before.text.lower(), text.count("\n", 0, before.at) + 1)
        before = token
    return found


def _plain(node: Node) -> Plain | None:
    if isinstance(node, Unary) and node.operator == "-":
        value = _plain(node.operand)
        return -value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if not isinstance(node, Literal) or isinstance(node.value, Special):
        return None
    return node.value


def _is_word(node: Node) -> bool:
    if isinstance(node, MemberAccess):
        return _is_word(node.record)
    return isinstance(node, Reference)


def _as_text(value: Plain) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def split(values: Sequence[str]) -> list[str]:
    """Return all names in these texts. A text may hold several names, separated by `,` or `;` as in DIRAC."""
    return [name for text in values for each in re.split(r"[,;]", text) if (name := each.strip())]
