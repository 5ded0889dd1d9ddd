"""Parses the job descriptions of a submission, and reports every problem of each."""

from collections.abc import Generator

import msgspec

from wms.errors import Rejected
from wms.jobdesc.array import is_array, without_lists
from wms.jobdesc.conflicts import ARRAY_LIMIT
from wms.jobdesc.description import JobDescription
from wms.jobdesc.from_json import read_json
from wms.jobdesc.kind import JobKinds, PartlyRead
from wms.jobdesc.problem import InvalidDescription, Problem
from wms.jobdesc.validation import validate
from wms.messages.commands import Submit

AT_A_GLANCE = 64
"""How many descriptions that differ little from earlier ones are parsed in one step."""

_decoder = msgspec.json.Decoder(JobDescription)
_encoder = msgspec.json.Encoder()


class DescriptionReader:
    """Parses job descriptions. It keeps earlier ones in memory, so that descriptions that differ little from them are parsed fast."""

    def __init__(self) -> None:
        self._kinds = JobKinds()

    def read(self, submit: Submit) -> Generator[None, None, list[PartlyRead]]:
        """Parse all job descriptions of a submission, in steps, and return them in the form in which they are stored.

        Raise InvalidDescription with all problems of all descriptions, or Rejected for too many jobs.
        """
        found: list[PartlyRead] = []
        problems: list[Problem] = []
        for n, job in enumerate(submit.jobs):
            raw = bytes(job)
            known = self._kinds.read(raw)
            if known is None or n % AT_A_GLANCE == 0:
                yield
            try:
                found.append(known or self._read_whole(raw))
            except InvalidDescription as invalid:
                problems += [
                    msgspec.structs.replace(each, place=f"jobs[{n}].{each.place}")
                    for each in invalid.problems
                ]
        if problems:
            raise InvalidDescription(problems)
        count = sum(each.kind.jobs for each in found)
        if count > ARRAY_LIMIT:
            raise Rejected(
                "TOO_MANY_JOBS", f"{count:,} jobs in one submission are over {ARRAY_LIMIT:,}", "split it"
            )
        return found

    def _read_whole(self, raw: bytes) -> PartlyRead:
        description, raw = _checked(raw)
        kind = self._kinds.remember(description)
        stored = _encoder.encode(without_lists(description)) if is_array(description) else raw
        return PartlyRead(kind, description.name, description.priority, stored.decode())


def _checked(raw: bytes) -> tuple[JobDescription, bytes]:
    """Return a description and its encoding in our own form. Raise Rejected if it is invalid, for example because a key occurs twice."""
    try:
        description = _decoder.decode(raw)
    except msgspec.DecodeError:
        description = None
    if description is None or _encoder.encode(description) != raw:
        (description,) = read_json(raw, series=False)
        return description, _encoder.encode(description)
    if problems := validate(description):
        raise InvalidDescription(problems)
    return description, raw
