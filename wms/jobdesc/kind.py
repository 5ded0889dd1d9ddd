"""Kinds of jobs: jobs that differ in arguments, values of the environment, name and priority alone. One job of a kind is checked whole.

These fields and the executable come first in a description. Its JSON is these fields, as our encoder writes them, and a
rest. All jobs of a kind have the same executable, names of variables and rest, byte by byte. So the rest of a job is right
if that of another was. Its own fields are right if their texts are printable and short, and its priority is in range.
"""

import msgspec

from wms.bounded_cache import BoundedCache
from wms.jobdesc.array import is_array, jobs_in
from wms.jobdesc.conflicts import NAME_LIMIT, PRIORITY_LIMIT
from wms.jobdesc.description import JobDescription

SIZE_LIMIT = 8_192
"""Bytes of a description. Larger ones are checked whole; in smaller ones no text but the name can be too long."""
KINDS_LIMIT = 10_000


class Own(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first fields of a description, in their order."""

    executable: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    name: str = ""
    priority: int = 1


_decoder = msgspec.json.Decoder(Own)
_encoder = msgspec.json.Encoder()


class Kind(msgspec.Struct, frozen=True, eq=False):
    """The common fields of descriptions of one kind; hashed by identity."""

    description: JobDescription
    """One description of the kind; its arguments, values of the environment, name and priority are its own."""
    jobs: int
    """The number of jobs that each description makes."""
    is_array: bool
    called: str
    """The default name of the jobs."""


class Read(msgspec.Struct, frozen=True):
    """An encoded description that is known to be valid."""

    kind: Kind
    name: str
    priority: int
    text: str
    """The description as JSON."""


def kind_of(description: JobDescription) -> Kind:
    """Return a new kind with this description as its example."""
    called = description.executable.rpartition("/")[2][:200]
    return Kind(description, jobs_in(description), is_array(description), called)


class Kinds:
    """A bounded cache of the kinds whose descriptions were found valid."""

    def __init__(self) -> None:
        self._kinds = BoundedCache[tuple[str | bytes, ...], Kind](KINDS_LIMIT)

    def knows(self, raw: bytes) -> bool:
        """Return whether an encoded description is known to be valid."""
        return self.read(raw) is not None

    def read(self, raw: bytes) -> Read | None:
        """Return the description that an encoded text holds if it is known to be valid; None if it must be validated."""
        parts = _parts(raw)
        if parts is None:
            return None
        own, rest = parts
        kind = self._kinds.get(_shared(own, rest))
        return (
            Read(kind, own.name, own.priority, raw.decode()) if kind is not None and _is_plain(own) else None
        )

    def remember(self, description: JobDescription) -> Kind:
        """Store and return the kind of a valid description."""
        kind = kind_of(description)
        parts = None if kind.is_array else _parts(_encoder.encode(description))
        if parts is not None:
            self._kinds[_shared(*parts)] = kind
        return kind


def _parts(raw: bytes) -> tuple[Own, bytes] | None:
    """Return the first fields of an encoded description, and the bytes after them; None if it is not in our encoding."""
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
