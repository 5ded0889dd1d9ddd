"""Kinds of jobs: jobs that differ only in arguments, values of the environment, name and priority.

One job of a kind is checked whole, and of the others these fields alone. These fields and the executable come first in a
description. Its JSON is these fields, as our encoder writes them, and a rest. All jobs of a kind have the same executable,
names of variables and rest, byte by byte. So the rest of a job is right if that of another was. Its own fields are right if
their texts are printable and short, and its priority is in range.
"""

import msgspec

from wms.bounded_cache import BoundedCache
from wms.jobdesc.array import is_array, jobs_in
from wms.jobdesc.conflicts import NAME_LIMIT, PRIORITY_LIMIT
from wms.jobdesc.description import JobDescription

SIZE_LIMIT = 8_192
"""The size in bytes up to which a description may be known by its kind; larger ones are always checked whole.

In a description of this size no text but the name can be too long.
"""
KINDS_LIMIT = 10_000


class Own(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first fields of a description: the executable, and the fields in which jobs of a kind may differ."""

    executable: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    name: str = ""
    priority: int = 1


_decoder = msgspec.json.Decoder(Own)
_encoder = msgspec.json.Encoder()


class Kind(msgspec.Struct, frozen=True, eq=False):
    """A kind of jobs: what the descriptions of these jobs share. It is hashed by identity."""

    description: JobDescription
    """A description of this kind, as an example: its arguments, values of the environment, name and priority are its own."""
    jobs: int
    """The number of jobs that each description of this kind makes."""
    is_array: bool
    called: str
    """The name of those jobs that are given none: the file name of the executable."""


class Read(msgspec.Struct, frozen=True):
    """A description in JSON that is known to be valid, without its fields being read."""

    kind: Kind
    name: str
    priority: int
    text: str
    """The description as JSON."""


def kind_of(description: JobDescription) -> Kind:
    """Return a new kind with the description as its example."""
    called = description.executable.rpartition("/")[2][:200]
    return Kind(description, jobs_in(description), is_array(description), called)


class Kinds:
    """A bounded cache of the kinds whose descriptions were found valid."""

    def __init__(self) -> None:
        self._kinds = BoundedCache[tuple[str | bytes, ...], Kind](KINDS_LIMIT)

    def knows(self, raw: bytes) -> bool:
        """Return whether a description in JSON is known to be valid by its kind."""
        return self.read(raw) is not None

    def read(self, raw: bytes) -> Read | None:
        """Return what a description in JSON says if its kind shows that it is valid; None if it has to be validated."""
        parts = _parts(raw)
        if parts is None:
            return None
        own, rest = parts
        kind = self._kinds.get(_shared(own, rest))
        return (
            Read(kind, own.name, own.priority, raw.decode()) if kind is not None and _is_plain(own) else None
        )

    def remember(self, description: JobDescription) -> Kind:
        """Store the kind of a valid description, and return this kind. The kind of an array is not stored."""
        kind = kind_of(description)
        parts = None if kind.is_array else _parts(_encoder.encode(description))
        if parts is not None:
            self._kinds[_shared(*parts)] = kind
        return kind


def _parts(raw: bytes) -> tuple[Own, bytes] | None:
    """Return the first fields of a description in JSON, and the bytes after them; None if our encoder did not write it."""
    if len(raw) > SIZE_LIMIT:
        return None
    try:
        own = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    first = _encoder.encode(own).removesuffix(b"}")
    return (own, raw[len(first) :]) if raw.startswith(first) else None


def _shared(own: Own, rest: bytes) -> tuple[str | bytes, ...]:
    return (own.executable, *own.environment, rest)


def _is_plain(own: Own) -> bool:
    if len(own.name) > NAME_LIMIT or not 0 <= own.priority <= PRIORITY_LIMIT:
        return False
    return "".join((own.name, *own.arguments, *own.environment.values())).isprintable()
