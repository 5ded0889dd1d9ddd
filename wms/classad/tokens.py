"""The tokens of the ClassAd language, and checks of texts before they are parsed."""

import re
from collections.abc import Iterator

from msgspec import Struct

from wms.classad.limits import NAME_LENGTH, TEXT_BYTES, refused
from wms.errors import shown

_PATTERN = re.compile(
    r"""(?P<sign>=\?=|=!=|>>>|<<|>>|<=|>=|==|!=|&&|\|\||\?:|/(?![*/])|[-+*%<>!~&|^?:,;=()\[\]{}]|\.(?![0-9]))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<space>[ \t\r\n\f\v]++|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/)
    |(?P<real>(?:[0-9]++\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]++[eE][+-]?[0-9]+)
    |(?P<integer>[0-9]++)
    |(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*")
    |(?P<quoted>'[^'\\]*+(?:\\.[^'\\]*+)*')
    |(?P<unreadable>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    '"': '"',
    "'": "'",
    "\\": "\\",
}
_NAME = re.compile(r"[ -~]+")
_UNIT = re.compile(r"[A-Za-z0-9_.]")


class Token(Struct, gc=False):
    """A token of a text: its kind, its content, and its position from 0. The kind of a sign is the sign, of others a group of the pattern, or "end"."""

    kind: str
    text: str
    at: int


def tokens(text: str, place: str, *, old: bool = False) -> Iterator[Token]:
    """Yield the tokens of a text, and at the end a token of kind "end". Strings are yielded without quotes and escapes.

    If `old` is True, a backslash is an ordinary character, except before a quote. Raise Rejected, with `place`, for an unreadable
    token.
    """
    for found in _PATTERN.finditer(text):
        kind = found.lastgroup
        if kind == "sign":
            yield Token(found[0], found[0], found.start())
        elif kind == "name":
            yield Token("name", found[0], found.start())
        elif kind in {"string", "quoted"}:
            yield Token(kind, _content(found, kind, place, old=old), found.start())
        elif kind in {"real", "integer"}:
            if _UNIT.match(text, found.end()):
                at = where(text, found.start(), place)
                raise refused("SYNTAX", "a number that goes on with letters", at, "write it in digits")
            yield Token(kind, found[0], found.start())
        elif kind == "unreadable":
            raise _unreadable(text, found.start(), place)
    yield Token("end", "", len(text))


def _content(found: re.Match[str], kind: str, place: str, *, old: bool) -> str:
    """Return a string or a quoted name without its quotes and escapes."""
    raw = found[0][1:-1]
    if "\\" in raw:
        raw = raw.replace('\\"', '"') if old else _unescaped(raw, where(found.string, found.start(), place))
    if kind == "quoted" and not (_NAME.fullmatch(raw) and len(raw) <= NAME_LENGTH):
        message = f"a name has 1 to {NAME_LENGTH} printable ASCII characters"
        raise refused("NAME", message, where(found.string, found.start(), place))
    return raw


def where(text: str, at: int, place: str) -> str:
    """Return a position as text for messages: `place`, and the line and column (from 1) of the character `at` (from 0)."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return f"{place}{' ' if place else ''}line {line}, column {column}"


def checked(text: str, place: str) -> str:
    """Return the text unchanged.

    Raise Rejected, with `place`, if it is too long, or has a lone surrogate or a character of code 0.
    """
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise refused("TEXT", "half a character (a lone surrogate)", place) from None
    if size > TEXT_BYTES:
        raise refused("TOO_LONG", f"{size:,} bytes, {TEXT_BYTES:,} are allowed", place)
    if "\0" in text:
        raise refused("TEXT", "a character of code 0", place)
    return text


def _unescaped(text: str, place: str) -> str:
    """Return the value of a string with escapes; octal escapes are bytes of UTF-8. Raise Rejected if these are invalid."""
    pieces: list[bytes] = []
    at = 0
    for escape in _ESCAPE.finditer(text):
        pieces += (text[at : escape.start()].encode(), _said(escape[1], place))
        at = escape.end()
    pieces.append(text[at:].encode())
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError:
        raise refused("TEXT", "escapes that make no character of UTF-8", place) from None


def _said(escape: str, place: str) -> bytes:
    if escape in _ESCAPES:
        return _ESCAPES[escape].encode()
    if not escape.isdecimal() or not escape.isascii() or escape[0] > "7":
        raise refused(
            "SYNTAX", f"an escape \\{shown(escape)} that says nothing", place, "write \\\\ for a backslash"
        )
    if not int(escape, 8):
        raise refused("TEXT", "a character of code 0", place)
    return bytes([int(escape, 8)])


def _unreadable(text: str, at: int, place: str) -> Exception:
    start = text[at]
    if start in "\"'":
        return refused(
            "SYNTAX",
            f"a {'string' if start == chr(34) else 'name'} that does not end",
            where(text, at, place),
        )
    if text.startswith("/*", at):
        return refused("SYNTAX", "a comment that does not end", where(text, at, place))
    return refused("SYNTAX", f'"{shown(start)}" means nothing here', where(text, at, place))
