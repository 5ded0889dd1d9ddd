"""Columns: lists of texts as JSON, and what can be told of one without looking at each of its texts by itself.

Most lists are of printable ASCII without quotes and backslashes. Such a list is `["`, its texts with `","` between them, and
`"]`, and can be written in no other way: counting tells that it is one, and its bytes are as good as its texts. For these then
stands a text that is at least as long as each, and that every rule objects to which asks for more than that.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from wms.jobdesc.array import CHUNK
from wms.jobdesc.rules import CONTROLS
from wms.jobdesc.validation import PLAIN, byte_length

_QUOTE = ord('"')
_BETWEEN = b'","'
_UNQUOTED = bytes(set(range(32, 127)) - set(b'"'))
_PLAIN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_BEGINS_NOT_PLAIN = re.compile(rb'"[._"-]')
WINDOWS = 64
"""Into which a list is divided to look for a long text."""

_decoder = msgspec.json.Decoder(list[str])
_encoder = msgspec.json.Encoder()


class Column(msgspec.Struct, frozen=True):
    """A list of texts, and what rules may ask of it."""

    json: bytes
    count: int
    size: int
    """Bytes of all texts together."""
    extremes: tuple[str, ...]
    """Few texts, of which something is wrong in a description if it is of any; those of the list, if it was read closely."""


Chunk = Mapping[str, Column]
"""Columns of one length, by name."""


def read(raw: bytes, *, closely: bool) -> Column:
    """Return the column of a list as it came; msgspec.DecodeError or UnicodeDecodeError: it is none of texts."""
    count = printed(raw)
    if count:
        size = len(raw) - len(_BETWEEN) * (count - 1) - len('[""]')
        few = _extremes_of_printed(raw, size) if closely else (" " * bound(raw),)
        return Column(raw, count, size, tuple(few))
    texts = _decoder.decode(raw)
    return Column(_encoder.encode(texts), len(texts), byte_length("".join(texts)), extremes(texts))


def printed(raw: bytes) -> int:
    """Return of how many texts a list is, if they are printable ASCII and it is written as above; else 0."""
    if b"\\" in raw or raw[:2] != b'["' or raw[-2:] != b'"]':
        return 0
    # If there are only as many quotes as begin, separate and end, none is in a text.
    count = raw.count(_BETWEEN, 2, -2) + 1
    return count if raw.translate(None, _UNQUOTED) == b'"' * (2 * count) else 0


def bound(raw: bytes) -> int:
    """Return a length that no text of such a list exceeds; not the least one, but one that costs little to know."""
    step = len(raw) // WINDOWS + 1
    # A text of twice as many bytes would fill a window.
    if all(_QUOTE in raw[at : at + step] for at in range(0, len(raw) - step + 1, step)):
        return 2 * step
    return max(map(len, raw.split(b'"')))


def _extremes_of_printed(raw: bytes, size: int) -> Iterator[str]:
    texts = raw[2:-2].split(_BETWEEN)
    yield max(texts, key=len).decode()
    structure = len(raw) - size
    if len(raw.translate(None, _PLAIN_CHARACTERS)) > structure or _BEGINS_NOT_PLAIN.search(raw):
        yield from islice((text for each in texts if not PLAIN.fullmatch(text := each.decode())), 1)


def extremes(texts: Sequence[str]) -> tuple[str, ...]:
    """Return few of the texts, of which something is wrong in a description if it is of any."""
    return tuple(dict.fromkeys(_extremes(texts)))


def _extremes(texts: Sequence[str]) -> Iterator[str]:
    if not texts:
        return
    whole = "".join(texts)
    # Rules ask for characters or for bytes.
    yield max(texts, key=len)
    if not whole.isascii():
        yield max(map(str.encode, texts), key=len).decode()
    yield from islice((text for text in texts if not PLAIN.fullmatch(text)), 1)
    if not whole.isprintable():
        yield from islice((text for text in texts if not text.isprintable()), 1)
        yield from islice((text for text in texts if CONTROLS.search(text)), 1)


def cut(lists: Mapping[str, Sequence[str]], count: int) -> list[dict[str, bytes]]:
    """Return lists of so many jobs in chunks of a thousand: by name, the values of those jobs as JSON."""
    return [
        {name: _encoder.encode(values[at : at + CHUNK]) for name, values in lists.items()}
        for at in range(0, count, CHUNK)
    ]


def small(chunks: Sequence[Chunk]) -> dict[str, tuple[str, ...]]:
    """Return small lists that are as wrong as those which these chunks make, all of the same names and none empty."""
    return even(
        {
            name: extremes([text for chunk in chunks for text in chunk[name].extremes])
            for name in next(iter(chunks), {})
        }
    )


def even(lists: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return lists of one length, the shorter ones filled with what they have."""
    longest = max(map(len, lists.values()), default=0)
    return {name: (*texts, *[texts[0]] * (longest - len(texts))) for name, texts in lists.items()}
