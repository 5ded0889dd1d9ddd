"""How descriptions become messages: few enough and small enough for one, each with an id of its own made from the user's."""

from collections.abc import Iterable, Sequence

import msgspec

from wms.client.selector import in_words
from wms.errors import Rejected
from wms.ids import CommandId, joined
from wms.jobdesc.array import jobs_in
from wms.jobdesc.description import JobDescription
from wms.jobdesc.problem import PROBLEMS_LIMIT, InvalidDescription
from wms.jobdesc.validation import ARRAY_LIMIT, validate
from wms.messages.commands import SUBMIT_LIMIT, Selector, Submit
from wms.messages.replies import Foreseen

BYTES_LIMIT = 880_000
ID_LIMIT = 180

_encoder = msgspec.json.Encoder()


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are taken and durable."""

    id: str
    """The same id with the same descriptions submits nothing twice."""
    ids: tuple[tuple[int, int], ...]
    """Ranges of job ids, both ends included, in the order of the descriptions."""
    repeated: bool = False
    """All of it had been taken before; nothing new was submitted."""
    warnings: tuple[str, ...] = ()
    """What you ought to know of the jobs, in words."""
    foreseen: tuple[Foreseen, ...] = ()
    """What keeps some of them from running anywhere, as things stand."""

    @property
    def count(self) -> int:
        """How many jobs these are."""
        return sum(high - low + 1 for low, high in self.ids)

    def job_ids(self) -> Iterable[int]:
        """Go through the ids in the order of the descriptions."""
        return (job_id for low, high in self.ids for job_id in range(low, high + 1))

    def selector(self) -> Selector:
        """Return what selects exactly these jobs."""
        return Selector(ids=joined(self.ids))

    def __str__(self) -> str:
        return in_words(joined(self.ids))


def check(descriptions: Sequence[JobDescription]) -> None:
    """Raise InvalidDescription with every problem of every description, each with its place."""
    if not descriptions:
        raise Rejected("NO_JOBS", "there is nothing to submit", "give at least one description")
    many = len(descriptions) > 1
    problems = []
    for n, description in enumerate(descriptions):
        problems += validate(description, f"jobs[{n}]" if many else "")
        if len(problems) > PROBLEMS_LIMIT:
            break
    if problems:
        raise InvalidDescription(problems[:PROBLEMS_LIMIT])


def check_id(command_id: str) -> None:
    """Raise Rejected for an id that no command can carry."""
    if not 0 < len(command_id) <= ID_LIMIT or not command_id.isprintable():
        raise Rejected("BAD_ID", f"an id must be 1 to {ID_LIMIT} printable characters", "choose another")


def commands(
    descriptions: Sequence[JobDescription], command_id: str, client: str, *, strict: bool = False
) -> list[Submit]:
    """Return the messages that submit the descriptions, in their order: the same ones for the same arguments."""
    check_id(command_id)
    check(descriptions)
    return [
        Submit(command_id=CommandId(f"{command_id}/{n}"), jobs=tuple(jobs), client=client, strict=strict)
        for n, jobs in enumerate(_parts(descriptions))
    ]


def rehearsals(parts: Iterable[Submit]) -> list[Submit]:
    """Return the messages that ask whether these would be taken."""
    return [
        msgspec.structs.replace(part, command_id=CommandId(f"{part.command_id}/rehearsal"), rehearsal=True)
        for part in parts
    ]


def _parts(descriptions: Sequence[JobDescription]) -> list[list[msgspec.Raw]]:
    parts: list[list[msgspec.Raw]] = []
    size = count = 0
    for description in descriptions:
        raw = _encoder.encode(description)
        size += len(raw) + 1
        count += jobs_in(description)
        if not parts or len(parts[-1]) == SUBMIT_LIMIT or size > BYTES_LIMIT or count > ARRAY_LIMIT:
            parts.append([])
            size, count = len(raw) + 1, jobs_in(description)
        parts[-1].append(msgspec.Raw(raw))
    return parts
