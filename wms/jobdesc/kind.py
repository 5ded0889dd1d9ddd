"""Kinds of jobs: jobs that differ only in arguments, values of the environment, name and priority.

Of all jobs of a kind, one is validated completely; of the others only these fields are checked. A description's JSON begins with the
executable and these fields, in the form that our encoder gives them, and a rest follows. All jobs of a kind have the same executable,
names of variables and rest, byte by byte. So the rest of a job is valid if that of another was. The fields are valid if their texts are
printable and short, and the priority is in range.
"""

import msgspec

from wms.bounded_cache import BoundedCache
from wms.decoding import UNDECODABLE
from wms.jobdesc.array import is_array, jobs_in
from wms.jobdesc.conflicts import NAME_LIMIT, PRIORITY_LIMIT
from wms.jobdesc.description import JobDescription

SIZE_LIMIT = 8_192
"""How many bytes a description may have to be recognised by its kind. Larger descriptions are always validated completely.

In a description of this size only the name can be too long; all other texts are within their limits.
"""
KINDS_LIMIT = 10_000


class OwnFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first fields of a description: the executable, and the fields in which jobs of a kind may differ."""

    executable: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    name: str = ""
    priority: int = 1


_decoder = msgspec.json.Decoder(OwnFields)
_encoder = msgspec.json.Encoder()


class JobKind(msgspec.Struct, frozen=True, eq=False):
    """What the descriptions of all jobs of one kind share. Objects are compared and hashed by identity."""

    description: JobDescription
    """The description of one job of this kind. Its arguments, values of the environment, name and priority are those of that job."""
    jobs: int
    """The number of jobs that each description of this kind makes."""
    is_array: bool
    called: str
    """The name of jobs whose description gives none: the file name of the executable."""


class PartlyRead(msgspec.Struct, frozen=True):
    """A description that is valid because its kind is known. Only its first fields were parsed."""

    kind: JobKind
    name: str
    priority: int
    text: str
    """The description as JSON."""


def kind_of(description: JobDescription) -> JobKind:
    """Return a new kind of jobs, of which `description` is the first."""
    called = description.executable.rpartition("/")[2][:200]
    return JobKind(description, jobs_in(description), is_array(description), called)


class JobKinds:
    """A bounded cache of kinds whose descriptions were found valid."""

    def __init__(self) -> None:
        self._kinds = BoundedCache[tuple[str | bytes, ...], JobKind](KINDS_LIMIT)

    def knows(self, raw: bytes) -> bool:
        """Return whether a description in JSON is valid because its kind is in the cache. If False, it must be validated."""
        return self.read(raw) is not None

    def read(self, raw: bytes) -> PartlyRead | None:
        """Return the kind, name and priority of a description in JSON if its kind is in the cache; None if it must be validated."""
        parts = _parts(raw)
        if parts is None:
            return None
        own, rest = parts
        kind = self._kinds.get(_shared(own, rest))
        return (
            PartlyRead(kind, own.name, own.priority, raw.decode())
            if kind is not None and _is_plain(own)
            else None
        )

    def remember(self, description: JobDescription) -> JobKind:
        """Store the kind of a description that was found valid, and return it. The kind of an array is returned but not stored."""
        kind = kind_of(description)
        parts = None if kind.is_array else _parts(_encoder.encode(description))
        if parts is not None:
            self._kinds[_shared(*parts)] = kind
        return kind


def _parts(raw: bytes) -> tuple[OwnFields, bytes] | None:
    """Return the first fields of a description in JSON, and the bytes after them.

    Return None if the description is too large, or is not in the form that our encoder writes.
    """
    if len(raw) > SIZE_LIMIT:
        return None
    try:
        own = _decoder.decode(raw)
    except UNDECODABLE:
        return None
    first = _encoder.encode(own).removesuffix(b"}")
    return (own, raw[len(first) :]) if raw.startswith(first) else None


def _shared(own: OwnFields, rest: bytes) -> tuple[str | bytes, ...]:
    return (own.executable, *own.environment, rest)


def _is_plain(own: OwnFields) -> bool:
    if len(own.name) > NAME_LIMIT or not 0 <= own.priority <= PRIORITY_LIMIT:
        return False
    return "".join((own.name, *own.arguments, *own.environment.values())).isprintable()
