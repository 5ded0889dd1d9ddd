"""Parses the job descriptions of a submission, and reports every problem of each."""

from collections.abc import Generator, Sequence

import msgspec

from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.jobdesc.array import is_array, without_lists
from wms.jobdesc.conflicts import ARRAY_LIMIT
from wms.jobdesc.description import JobDescription
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.from_json import read_json
from wms.jobdesc.kind import JobKinds, PartlyRead
from wms.jobdesc.problem import InvalidDescription, Problem
from wms.jobdesc.small import is_small
from wms.jobdesc.validation import validate
from wms.messages.commands import Submit
from wms.parsing.parser_pool import NeedsProcess

AT_A_GLANCE = 64
"""How many descriptions that differ little from earlier ones are parsed in one step."""

_decoder = msgspec.json.Decoder(JobDescription)
_encoder = msgspec.json.Encoder()


class DescriptionReader:
    """Parses job descriptions. It keeps earlier ones in memory, so that descriptions that differ little from them are parsed fast."""

    def __init__(self) -> None:
        self._kinds = JobKinds()

    def read(
        self, submit: Submit, valid: Sequence[bytes] | None = None, *, only_small: bool = False
    ) -> Generator[None, None, list[PartlyRead]]:
        """Parse all job descriptions of a submission, in steps, and return them in the form in which they are stored.

        `valid` are the descriptions as `valid_descriptions` returned them. Raise InvalidDescription with all problems of all descriptions, or
        Rejected for too many jobs. With `only_small`, raise NeedsProcess if a description of an unknown kind is not small.
        """
        found: list[PartlyRead] = []
        problems: list[Problem] = []
        for n, job in enumerate(submit.jobs):
            raw = bytes(job)
            known = self._kinds.read(raw)
            if known is None or n % AT_A_GLANCE == 0:
                yield
            if known is None and only_small and not is_small(raw):
                raise NeedsProcess
            try:
                found.append(known or self._read_whole(raw, valid[n] if valid is not None else None))
            except InvalidDescription as invalid:
                problems += _placed(invalid, n)
        if problems:
            raise InvalidDescription(problems)
        count = sum(each.kind.jobs for each in found)
        if count > ARRAY_LIMIT:
            raise Rejected(
                "TOO_MANY_JOBS", f"{count:,} jobs in one submission are over {ARRAY_LIMIT:,}", "split it"
            )
        return found

    def _read_whole(self, raw: bytes, valid: bytes | None) -> PartlyRead:
        description, raw = _checked(raw) if valid is None else (_decoder.decode(valid), valid)
        kind = self._kinds.remember(description)
        stored = _encoder.encode(without_lists(description)) if is_array(description) else raw
        return PartlyRead(kind, description.name, description.priority, stored.decode())


def valid_descriptions(*raws: bytes) -> list[bytes]:
    """Return job descriptions in our own form, for `DescriptionReader.read`; it runs in a parsing process.

    Raise InvalidDescription with all problems of all of them.
    """
    found: list[bytes] = []
    problems: list[Problem] = []
    for n, raw in enumerate(raws):
        try:
            found.append(_checked(raw)[1])
        except InvalidDescription as invalid:
            problems += _placed(invalid, n)
    if problems:
        raise InvalidDescription(problems)
    return found


def _placed(invalid: InvalidDescription, n: int) -> list[Problem]:
    return [msgspec.structs.replace(each, place=f"jobs[{n}].{each.place}") for each in invalid.problems]


def _checked(raw: bytes) -> tuple[JobDescription, bytes]:
    """Return a description and its encoding in our own form. Raise Rejected if it is invalid, for example because a key occurs twice."""
    try:
        description = _decoder.decode(raw)
    except UNDECODABLE:
        description = None
    if description is None or _encoder.encode(description) != raw:
        found = read_json(raw, expansion=Expansion(values=0, size=len(raw)))
        if len(found) != 1:
            raise Rejected("TOO_MANY_JOBS", "a description of a message makes several", "send each by itself")
        return found[0], _encoder.encode(found[0])
    if problems := validate(description):
        raise InvalidDescription(problems)
    return description, raw
