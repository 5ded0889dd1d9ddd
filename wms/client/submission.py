"""The messages of a submission. There are as few as can carry the descriptions, each with an id derived from the submission's id."""

import uuid
from collections.abc import Iterable, Sequence

import msgspec

from wms.client import long_lists
from wms.client.selector import in_words
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.ids import CommandId, joined
from wms.jobdesc.array import jobs_in, without_lists
from wms.jobdesc.conflicts import ARRAY_LIMIT
from wms.jobdesc.description import JobDescription
from wms.jobdesc.kind import JobKinds
from wms.jobdesc.problem import PROBLEMS_LIMIT, InvalidDescription, Problem
from wms.jobdesc.validation import validate
from wms.messages.commands import SUBMIT_LIMIT, AddChunks, LongLists, Selector, Submit
from wms.messages.replies import Foreseen

BYTES_LIMIT = 880_000
ID_LIMIT = 180

_encoder = msgspec.json.Encoder()


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The durable result of a submission: the ids of its jobs, and warnings about them."""

    id: str
    """The id of the submission. The same descriptions with this id are submitted only once."""
    ids: tuple[tuple[int, int], ...]
    """Ranges of job ids, both ends included, in the order of the descriptions."""
    repeated: bool = False
    """Whether the whole submission had been made before, so that nothing new was submitted."""
    warnings: tuple[str, ...] = ()
    """Warnings about the jobs, as text."""
    foreseen: tuple[Foreseen, ...] = ()
    """For jobs that could run nowhere at the time of submission, why not."""

    @property
    def count(self) -> int:
        """The number of submitted jobs."""
        return sum(high - low + 1 for low, high in self.ids)

    def job_ids(self) -> Iterable[int]:
        """Return the job ids in the order of the descriptions."""
        return (job_id for low, high in self.ids for job_id in range(low, high + 1))

    def selector(self) -> Selector:
        """Return a selector of exactly the submitted jobs."""
        return Selector(ids=joined(self.ids))

    def __str__(self) -> str:
        return in_words(joined(self.ids))


_decoder = msgspec.json.Decoder(JobDescription)
_kinds = JobKinds()


def check_description(given: object) -> None:
    """Raise TypeError if `given`, a value of a program, is no job description."""
    if not isinstance(given, JobDescription):
        raise TypeError(f"expected JobDescription, or a sequence of it, not {type(given).__name__}")


def _checked(descriptions: Sequence[JobDescription]) -> list[bytes]:
    """Return each description as JSON. Raise InvalidDescription, with every problem of every description, if one is invalid."""
    if not descriptions:
        raise Rejected("NO_JOBS", "there is nothing to submit", "give at least one description")
    many = len(descriptions) > 1
    checked: list[bytes] = []
    problems: list[Problem] = []
    for n, description in enumerate(descriptions):
        check_description(description)
        raw = _encoded(description)
        if not _kinds.knows(raw):
            problems += _problems(description, raw, f"jobs[{n}]" if many else "")
        if len(problems) > PROBLEMS_LIMIT:
            break
        checked.append(raw)
    if problems:
        raise InvalidDescription(problems[:PROBLEMS_LIMIT])
    return checked


def _encoded(description: JobDescription) -> bytes:
    try:
        return _encoder.encode(description)
    except (TypeError, ValueError, OverflowError):
        return b""  # a value that cannot be encoded breaks a rule; validation names its place


def _problems(description: JobDescription, raw: bytes, place: str) -> Sequence[Problem]:
    """Return the problems of a description. `raw` is the description as JSON, which is what is checked; `place` names it in problems."""
    try:
        told = description if description.parameters else _decoder.decode(raw)
    except UNDECODABLE:
        told = description
    found = validate(told, place)
    if not found:
        _kinds.remember(told)
    return found


def new_id() -> str:
    """Return a new random id for a request whose caller gave none."""
    return uuid.uuid4().hex


def check_id(command_id: str) -> None:
    """Raise Rejected if the id of a command is empty, too long, or not printable."""
    if not 0 < len(command_id) <= ID_LIMIT or not command_id.isprintable():
        raise Rejected("BAD_ID", f"an id must be 1 to {ID_LIMIT} printable characters", "choose another")


class Messages(msgspec.Struct, frozen=True):
    """The messages of a submission: first those with long lists of parameters, then those with the descriptions."""

    values: list[AddChunks]
    submits: list[Submit]


def messages(
    descriptions: Sequence[JobDescription],
    command_id: str,
    client: str,
    *,
    strict: bool = False,
    hold: bool = False,
) -> Messages:
    """Return the messages that submit the descriptions, in their order. The same arguments give the same messages.

    `client` is the id of the client that gets the answers. If `strict` is True, the system refuses jobs that could run nowhere. If
    `hold` is True, the jobs are Held until released. Raise Rejected if the id or a description is invalid.
    """
    check_id(command_id)
    values: list[AddChunks] = []
    parts: list[_Part] = []
    for place, (description, whole) in enumerate(zip(descriptions, _checked(descriptions), strict=True)):
        raw, brought = _divided(description, whole, f"{command_id}/{place}", client)
        values += brought
        count = jobs_in(description)
        if not parts or not parts[-1].has_room(len(raw), count):
            parts.append(_Part())
        parts[-1].add(raw, count, [each.command_id for each in brought])
    submits = [
        Submit(
            command_id=CommandId(f"{command_id}/{n}"),
            jobs=tuple(part.jobs),
            lists=tuple(part.lists),
            client=client,
            strict=strict,
            hold=hold,
        )
        for n, part in enumerate(parts)
    ]
    return Messages(values, submits)


def _divided(
    description: JobDescription, whole: bytes, prefix: str, client: str
) -> tuple[bytes, list[AddChunks]]:
    """Return a description as it is sent, and the messages that carry its parameter lists, with ids that begin with `prefix`.

    `whole` is the description as JSON. If it is short enough, its lists stay in it, and there are no such messages.
    """
    if not description.parameters or len(whole) <= long_lists.INLINE_BYTES:
        return whole, []
    return _encoder.encode(without_lists(description)), list(long_lists.apart(description, prefix, client))


class _Part:
    """The content of one Submit message, to which descriptions are added while there is room."""

    def __init__(self) -> None:
        self.jobs: list[msgspec.Raw] = []
        self.lists: list[LongLists] = []
        self._size = self._count = 0

    def has_room(self, size: int, count: int) -> bool:
        """Return whether a description of `size` bytes and `count` jobs still fits into the message."""
        fits = self._size + size < BYTES_LIMIT and self._count + count <= ARRAY_LIMIT
        return fits and len(self.jobs) < SUBMIT_LIMIT

    def add(self, raw: bytes, count: int, lists: list[CommandId]) -> None:
        """Add a description, `raw` as JSON, of `count` jobs. `lists` are the ids of the messages that carry its parameter lists."""
        if lists:
            self.lists.append(LongLists(len(self.jobs), tuple(lists)))
        self.jobs.append(msgspec.Raw(raw))
        self._size += len(raw) + 1
        self._count += count


def rehearsals(parts: Iterable[Submit]) -> list[Submit]:
    """Return messages that ask whether these Submit messages would be accepted, without submitting anything."""
    return [
        msgspec.structs.replace(part, command_id=CommandId(f"{part.command_id}/rehearsal"), rehearsal=True)
        for part in parts
    ]
