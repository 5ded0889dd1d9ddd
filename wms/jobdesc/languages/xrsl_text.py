"""Parses xRSL, ARC's extension of the Globus resource specification language: relations in brackets, joined by & | or +.

A relation is `(name=value ...)`. A value is a text, with or without quotes, or a list in brackets. `$(X)` is a variable that
`rsl_substitution` defines, `#` joins two texts. As in ARC, case and underscores in names do not matter.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

import msgspec

from wms.jobdesc.document import unreadable

DEPTH_LIMIT: Final = 16
TOKENS_LIMIT: Final = 200_000
TEXT_LIMIT: Final = 32_768
"""How many characters a joined text may have. Variables that use each other twice would double a text again and again."""

Value: TypeAlias = "str | tuple[Value, ...]"
Said: TypeAlias = "str | Sequence[Value]"
"""The value of an attribute to be written: one text, or a sequence of values."""

_PATTERN = re.compile(
    r"""(?P<space>\s+|\(\*.*?\*\))
    |(?P<sign>!=|<=|>=|[()&|+=<>\#])
    |(?P<variable>\$\(\s*[A-Za-z_][A-Za-z0-9_]*\s*\))
    |(?P<double>"(?:[^"]|"")*")
    |(?P<single>'(?:[^']|'')*')
    |(?P<word>[^\s()&|+=<>!"'^\#$]+)""",
    re.VERBOSE | re.DOTALL,
)
_OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=")


class Relation(msgspec.Struct, frozen=True):
    """One relation of xRSL, such as `(memory>=2000)`: an attribute, an operator and values. `name` is in lower case and without underscores."""

    name: str
    operator: str
    values: tuple[Value, ...]
    line: int


class JobRequest(msgspec.Struct, frozen=True):
    """The request of one job: relations that must all hold, and alternatives, one of which must hold."""

    relations: tuple[Relation, ...]
    alternatives: tuple[Relation, ...] = ()
    """The relations joined by `|`, of which one must hold."""


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    line: int


def parse(text: str) -> list[JobRequest]:
    """Return the requests of an xRSL document, one for each job.

    Raise InvalidDescription if the text is no xRSL.
    """
    return _Parser(_tokens(text)).document()


def _tokens(text: str) -> list[_Token]:
    found, at, line = list[_Token](), 0, 1
    while at < len(text):
        match = _quoted_by_user(text, at) or _PATTERN.match(text, at)
        if match is None or len(found) >= TOKENS_LIMIT:
            what = "has too many words" if match else f'"{text[at]}" means nothing here'
            raise unreadable(f"is not xRSL: {what}", line)
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match[0], line))
        line += match[0].count("\n")
        at = match.end()
    return [*found, _Token("end", "the end", line)]


def _quoted_by_user(text: str, at: int) -> "re.Match[str] | None":
    """Return the match at index `at` of a text between quote characters that its author chose; None if there is none.

    Such a text begins with `^` and any character, and ends with that character.
    """
    if text[at] != "^" or at + 1 >= len(text):
        return None
    quote = re.escape(text[at + 1])
    return re.compile(rf"(?P<own>\^{quote}(?:(?!{quote}).|{quote}{quote})*{quote})", re.DOTALL).match(
        text, at
    )


class _Parser:
    """A recursive-descent parser of the tokens of an xRSL document."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._variables = dict[str, str]()

    def document(self) -> list[JobRequest]:
        if self._next.text == "+":
            self._take()
            found = list[JobRequest]()
            while self._next.text == "(":
                self._take()
                found.append(self._request())
                self._expect(")")
        else:
            found = [self._request()]
        if self._next.kind != "end":
            self._fail("the end of the text")
        return found

    def _request(self) -> JobRequest:
        relations, alternatives = list[Relation](), list[Relation]()
        self._terms(relations, alternatives, depth=0)
        return JobRequest(tuple(relations), tuple(alternatives))

    def _terms(self, into: list[Relation], alternatives: list[Relation], depth: int) -> None:
        """Parse relations, each in brackets and perhaps after an operator, and append them to `into`.

        Relations after the operator `|` are appended to `alternatives`. `depth` counts the brackets around the present position.
        """
        if depth > DEPTH_LIMIT:
            raise unreadable(f"is nested deeper than {DEPTH_LIMIT} levels", self._next.line)
        if self._next.text in ("&", "|"):
            into = alternatives if self._take().text == "|" else into
        if self._next.text != "(":
            self._fail('"("')
        while self._next.text == "(":
            self._take()
            if self._next.text in ("&", "|", "("):
                self._terms(into, alternatives, depth + 1)
            else:
                relation = self._relation()
                self._define(relation)
                into.append(relation)
            self._expect(")")

    def _relation(self) -> Relation:
        name = self._take()
        if name.kind not in ("word", "double", "single"):
            self._fail("the name of an attribute", name)
        operator = self._take()
        if operator.text not in _OPERATORS:
            self._fail("one of " + " ".join(_OPERATORS), operator)
        plain = _unquoted(name).lower().replace("_", "")
        return Relation(plain, operator.text, self._values(0), name.line)

    def _values(self, depth: int) -> tuple[Value, ...]:
        if depth > DEPTH_LIMIT:
            raise unreadable(f"is nested deeper than {DEPTH_LIMIT} levels", self._next.line)
        found = list[Value]()
        while self._next.text != ")" or self._next.kind != "sign":
            if self._next.kind == "sign" and self._next.text == "(":
                self._take()
                found.append(self._values(depth + 1))
                self._expect(")")
            else:
                found.append(self._text())
        return tuple(found)

    def _text(self) -> str:
        said = self._operand()
        while self._next.kind == "sign" and self._next.text == "#":
            self._take()
            said += self._operand()
            if len(said) > TEXT_LIMIT:
                raise unreadable(f"joins a text of more than {TEXT_LIMIT:,} characters", self._next.line)
        return said

    def _operand(self) -> str:
        token = self._take()
        if token.kind == "variable":
            return self._value_of(token)
        if token.kind in ("sign", "end"):
            self._fail("a value", token)
        return _unquoted(token)

    def _value_of(self, token: _Token) -> str:
        name = token.text[2:-1].strip()
        if name not in self._variables:
            raise unreadable(f"uses $({name}), which rsl_substitution does not define", token.line)
        return self._variables[name]

    def _define(self, relation: Relation) -> None:
        if relation.name != "rslsubstitution":
            return
        for pair in relation.values:
            match pair:
                case (str(name), str(value)):
                    self._variables[name] = value
                case _:
                    raise unreadable("rsl_substitution takes pairs of a name and a value", relation.line)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, sign: str) -> None:
        token = self._take()
        if token.kind != "sign" or token.text != sign:
            self._fail(f'"{sign}"', token)

    def _fail(self, wanted: str, token: _Token | None = None) -> NoReturn:
        token = token or self._next
        raise unreadable(f"is not xRSL: {wanted} is missing before {token.text[:40]!r}", token.line)


def _unquoted(token: _Token) -> str:
    if token.kind == "own":
        quote = token.text[1]
        return token.text[2:-1].replace(2 * quote, quote)
    if token.kind in ("double", "single"):
        quote = token.text[0]
        return token.text[1:-1].replace(2 * quote, quote)
    return token.text


def written(relations: Mapping[str, Said]) -> str:
    """Return an xRSL request with these attributes, each on a line of its own, and texts in double quotes."""
    lines = (f"({name}={_written(value)})" for name, value in relations.items())
    return "&" + "\n ".join(lines) + "\n"


def _written(value: Said) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return " ".join(_written(each) if isinstance(each, str) else f"({_written(each)})" for each in value)
