"""Kinds of jobs: a million jobs differ in what they are told, and what else there is to them is looked at once.

Jobs of one kind are equal but for arguments, values of the environment, name and priority. Where these are plain, one
look at the encoded description tells that it is right: its shape is what our encoder writes, and what is around its own
part is byte for byte that of a description that was found right as a whole. Whatever is not plain is no worse for it: it
is read, and judged by all rules.
"""

import re
from functools import lru_cache
from typing import TypeAlias

import msgspec

from wms.jobdesc.array import is_array, jobs_in
from wms.jobdesc.description import JobDescription

PLAIN_LIMIT = 8_192
"""Bytes of a plain job's own part; the rules allow more, and look at it then."""
NAME_LIMIT = 255
KINDS_LIMIT = 20_000
KIND_LIMIT = 2_048
"""Bytes; the few that have more in common are looked at each time."""
LONGEST_PRIORITY = 2
"""Digits."""

# Printable ASCII, with a backslash before quote and backslash alone: that is how these are encoded, and the only way.
_CHARS = rb'[ !#-\[\]-~]*+(?:\\["\\][ !#-\[\]-~]*+)*'
_TEXT = rb'"' + _CHARS + rb'"'
_VARIABLE = rb'"[A-Za-z_][A-Za-z0-9_]*+":' + _TEXT
# Fields come in their order, and those that say what they would say anyway are left out.
_OWN = re.compile(
    rb'(\{"executable":' + _TEXT + rb")"
    rb'(?:,"arguments":\[' + _TEXT + rb"(?:," + _TEXT + rb")*\])?"
    rb'(?:,"environment":\{(' + _VARIABLE + rb"(?:," + _VARIABLE + rb")*)\})?"
    rb'(?:,"name":"(?!")(' + _CHARS + rb')")?'
    # What is there but not plain is still the job's own.
    rb'(?!,"(?:arguments|environment|name)":)'
)
_VALUES = re.compile(rb":" + _TEXT)
_encoder = msgspec.json.Encoder()
_PRIORITY = b',"priority":'
# What is 1, the default, is never written.
_PRIORITIES = {str(n).encode() + end: n for n in (0, *range(2, 11)) for end in (b",", b"}")}


class Kind(msgspec.Struct, frozen=True, eq=False):
    """What descriptions have in common; its own hash, since it is looked up by what it is."""

    description: JobDescription
    """One of them: what it says of its own means nothing to the others."""
    jobs: int
    """How many jobs each makes."""
    is_array: bool
    called: str
    """What jobs without a name are called."""


class Read(msgspec.Struct, frozen=True):
    """A description that was found right."""

    kind: Kind
    name: str
    priority: int
    text: str
    """JSON."""


def kind_of(description: JobDescription) -> Kind:
    """Return a kind of the description's own."""
    called = description.executable.rpartition("/")[2][:200]
    return Kind(description, jobs_in(description), is_array(description), called)


_Shared: TypeAlias = tuple[bytes, bytes, bytes]
"""Program, names of variables, and what follows a job's own part but for the priority."""


class Kinds:
    """The kinds that were found right lately."""

    def __init__(self) -> None:
        self._kinds: dict[_Shared, tuple[Kind, int | None]] = {}

    def knows(self, raw: bytes) -> bool:
        """Tell whether an encoded description is plain and of a known kind: then nothing is wrong with it."""
        parts = _parts(raw)
        return parts is not None and self._kind(parts[0], parts[3]) is not None

    def read(self, raw: bytes) -> Read | None:
        """Return what an encoded description says, if it is known so; None says nothing of it."""
        parts = _parts(raw)
        if parts is None:
            return None
        shared, name, priority, place = parts
        kind = self._kind(shared, place)
        return None if kind is None else Read(kind, name, priority, raw.decode())

    def _kind(self, shared: _Shared, place: int | None) -> Kind | None:
        kind, expected = self._kinds.get(shared, _UNKNOWN)
        return kind if place is None or place == expected else None

    def remember(self, description: JobDescription) -> Kind:
        """Return the kind of a description that was found right."""
        kind = kind_of(description)
        if not kind.is_array:
            parts = _parts(_encoder.encode(msgspec.structs.replace(description, priority=2)))
            if parts is not None and sum(map(len, parts[0])) <= KIND_LIMIT:
                if len(self._kinds) >= KINDS_LIMIT:
                    self._kinds.clear()
                self._kinds[parts[0]] = kind, parts[3]
        return kind


_UNKNOWN = None, None


def _parts(raw: bytes) -> tuple[_Shared, str, int, int | None] | None:
    """Return what a plain job shares, its name, its priority, and where in what follows that is said, if it is."""
    own = _OWN.match(raw)
    if own is None or own.end() > PLAIN_LIMIT or len(raw) - own.end() > KIND_LIMIT + LONGEST_PRIORITY:
        return None  # of the last, none is remembered
    program, environment, name = own.groups(b"")
    if len(name) > NAME_LIMIT or b"\\" in name:
        return None
    shared, says, after = raw[own.end() :].partition(_PRIORITY)
    priority, place = 1, None
    if says:
        digits = 2 if after[:2] == b"10" else 1
        found = _PRIORITIES.get(after[: digits + 1])
        if found is None:
            return None
        priority, place, shared = found, len(shared), shared + after[digits:]
    return (program, environment and _names(environment), shared), name.decode(), priority, place


@lru_cache(maxsize=1_000)
def _names(environment: bytes) -> bytes:
    """Return the names of variables without their values."""
    return _VALUES.sub(b"", environment)
