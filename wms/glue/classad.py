"""The ad of a computing element as ClassAd text, in the form of gLite's: `[id; update_time; expiry_time; info = [...]]`.

Of the language only what publishes values is read: texts, numbers, truths, lists, records. What is none of these is an
expression, and is kept as its text. (gLite itself published names without quotes, `name = gridftp05.cern.ch`, which the
language takes for a reference to nothing: where a text must stand, such an expression's text is taken.)
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from wms.errors import Rejected, shown
from wms.glue.ad import EXPRESSIONS, Ad, Attributes, attributes, element_of

TEXT_LIMIT = 1 << 20
DEPTH_LIMIT = 16
LIFETIME_SECONDS = 300
"""Of an ad that does not say it: gLite's."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{}();,=]|[^][{}();,="]+|"', re.DOTALL)
_OPENING = {"[": "]", "{": "}", "(": ")"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_REAL = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30}([eE][+-]?[0-9]{1,3})?|[eE][+-]?[0-9]{1,3})")
_SPACE = re.compile(r"\s+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_SPECIAL = re.compile('["\\\\\n\t\r]')
_WRITTEN = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Expression(str):
    """The text of what is no value."""

    __slots__ = ()


class Text(NamedTuple):
    """An ad's attributes: values, and expressions as text."""

    values: Attributes
    expressions: dict[str, str]


def read_classad(text: str) -> Ad:
    """Return the element that an ad describes, since when and for how long; raises Rejected for what is no such ad."""
    outer = read_attributes(text)
    inner = outer.values.get("info")
    said = outer.values if not isinstance(inner, dict) else _with_id(inner, outer.values)
    updated = outer.values.get("update_time")
    lifetime = outer.values.get("expiry_time", said.get("TTLCEinfo"))
    return Ad(
        element=element_of(said),
        updated_at=datetime.fromtimestamp(_seconds(updated, 2**32) or 0, UTC),
        lifetime_seconds=_seconds(lifetime, 86_400) or LIFETIME_SECONDS,
    )


def read_attributes(text: str) -> Text:
    """Return the attributes of an ad in the new syntax; raises Rejected for what is none, is too large or too deep."""
    if len(text) > TEXT_LIMIT:
        raise Rejected(
            "GLUE_TOO_LARGE", f"an ad of {len(text):,} characters, at most {TEXT_LIMIT:,} are read"
        )
    record = _record(_Tokens([token for token in _TOKEN.findall(text) if not token.isspace()]), 1)
    values = {name: value for name, value in record.items() if not isinstance(value, Expression)}
    return Text(values, {name: str(value) for name, value in record.items() if isinstance(value, Expression)})


def write_classad(ad: Ad) -> str:
    """Return the ad as text, all that is known of the element and the usual expressions in `info`."""
    info = attributes(ad.element) | {name: Expression(text) for name, text in EXPRESSIONS.items()}
    # These lists are looked at by the expressions, and are to be there even if they are empty.
    searched: Attributes = {"GlueCEAccessControlBaseRule": [], "GlueCESEBindGroupSEUniqueID": []}
    return _text(
        {
            "id": ad.element.id,
            "update_time": int(ad.updated_at.timestamp()),
            "expiry_time": ad.lifetime_seconds,
            "info": searched | info | {"TTLCEinfo": ad.lifetime_seconds},
        }
    )


def _with_id(info: Mapping[str, Any], outer: Mapping[str, Any]) -> Attributes:
    return {"CEid": outer["id"], **info} if "id" in outer else dict(info)


def _seconds(value: object, most: int) -> int | None:
    return value if isinstance(value, int) and 0 < value <= most else None


class _Tokens:
    """The tokens of a text, and how far they were read."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def next(self) -> str:
        return self._tokens[self._next].strip() if self._next < len(self._tokens) else ""

    def take(self) -> str:
        token = self.next
        self._next += 1
        return token

    def since(self, start: int) -> str:
        """Return the text from a place on, on one line."""
        taken = self._tokens[start : self._next]
        return "".join(each if each[0] == '"' else _SPACE.sub(" ", each) for each in taken).strip()

    @property
    def place(self) -> int:
        return self._next

    def takes(self, token: str) -> bool:
        if self.next != token:
            return False
        self._next += 1
        return True

    def fail(self, what: str) -> NoReturn:
        near = " ".join(self._tokens[self._next : self._next + 3])
        raise Rejected(
            "GLUE_INVALID", f"not an ad: {what} should stand before {shown(near, 60) or 'the end'}"
        )


def _record(tokens: _Tokens, depth: int) -> Attributes:
    """Read a whole ad; nothing may stand behind it."""
    found = _attributes(tokens, depth)
    if tokens.next:
        tokens.fail("the end")
    return found


def _attributes(tokens: _Tokens, depth: int) -> Attributes:
    if depth > DEPTH_LIMIT:
        raise Rejected("GLUE_TOO_LARGE", f"lists and records are nested over {DEPTH_LIMIT} deep")
    if not tokens.takes("["):
        tokens.fail('"["')
    found: Attributes = {}
    while not tokens.takes("]"):
        name = tokens.take()
        if not _NAME.fullmatch(name) or not tokens.takes("="):
            tokens.fail("a name and =")
        found[name] = _value(tokens, depth)
        if not tokens.takes(";") and tokens.next != "]":
            tokens.fail('";"')
    return {name: value for name, value in found.items() if value is not None}


def _value(tokens: _Tokens, depth: int) -> Any:
    """Read a value, or an expression to its end; None is undefined."""
    if tokens.next == "[":
        return _attributes(tokens, depth + 1)
    if tokens.next == "{":
        return _list(tokens, depth + 1)
    start = tokens.place
    words = _skip_expression(tokens)
    if not words:
        tokens.fail("a value")
    text = tokens.since(start)
    return _scalar(text) if words == 1 else Expression(text)


def _list(tokens: _Tokens, depth: int) -> list[Any]:
    if depth > DEPTH_LIMIT:
        raise Rejected("GLUE_TOO_LARGE", f"lists and records are nested over {DEPTH_LIMIT} deep")
    tokens.take()
    found = []
    while not tokens.takes("}"):
        found.append(_value(tokens, depth))
        if not tokens.takes(",") and tokens.next != "}":
            tokens.fail('","')
    return [each for each in found if each is not None]


def _skip_expression(tokens: _Tokens) -> int:
    """Go to the end of a value, over brackets and what is in them; return how many tokens it has."""
    closing: list[str] = []
    count = 0
    while tokens.next and (closing or tokens.next not in (";", ",", "]", "}")):
        token = tokens.take()
        count += 1
        if token in _OPENING:
            closing.append(_OPENING[token])
        elif token in ("]", "}", ")") and (not closing or closing.pop() != token):
            tokens.fail("another bracket")
    return count


def _scalar(word: str) -> Any:
    match word.casefold():
        case "true" | "false" as truth:
            return truth == "true"
        case "undefined" | "error":
            return None
    if len(word) > 1 and word[0] == word[-1] == '"':
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), word[1:-1])
    if _INTEGER.fullmatch(word):
        return int(word)
    return float(word) if _REAL.fullmatch(word) else Expression(word)


def _text(value: object) -> str:
    match value:
        case Expression():
            return value
        case str():
            return '"' + _SPECIAL.sub(lambda found: _WRITTEN[found[0]], value) + '"'
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case dict():
            return "[" + "; ".join(f"{name} = {_text(each)}" for name, each in value.items()) + "]"
        case list() | tuple():
            return "{" + ", ".join(map(_text, value)) + "}" if value else "{}"
        case _:
            raise AssertionError(value)
