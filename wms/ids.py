"""Ids of jobs, sites, messages and other things. Each kind of id has its own type, so that the type checker keeps them apart."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, NewType

from wms.bounds import AgreementName, Digest, GivenName, JobNumber, MessageId, PilotName, Sequence

JobId = NewType("JobId", JobNumber)
TaskQueueId = NewType("TaskQueueId", JobNumber)
Epoch = NewType("Epoch", Sequence)
"""The fencing token of a lease: how many times the job has been given away. A lease with an older epoch is lost."""

PilotId = NewType("PilotId", PilotName)
SiteName = NewType("SiteName", GivenName)
CeName = NewType("CeName", GivenName)
CommandId = NewType("CommandId", MessageId)
"""The id of a command, chosen by the user's tool; a second command with the same id takes no effect."""
RequestId = NewType("RequestId", PilotName)
"""The id of one match request, chosen by the job agent."""
ReportId = NewType("ReportId", PilotName)
"""The id of one report, chosen by the job agent, which repeats the report until it is acknowledged."""
AgreementId = NewType("AgreementId", AgreementName)
"""The id of an agreement on a reservation, chosen by the broker; batch systems see it in the names of reservations."""
InstanceId = NewType("InstanceId", GivenName)
"""The name of one running process of a service."""
SandboxId = NewType("SandboxId", Digest)
"""The SHA-256 of a sandbox's bytes, in lower-case hexadecimal."""


class CeId(NamedTuple):
    """A computing element, by site and name. With an empty `ce` it means the whole site."""

    site: str
    ce: str


class AttemptId(NamedTuple):
    """One attempt of a job, named by job and epoch in its lease, its reports and its result."""

    job_id: JobId
    epoch: Epoch


class Identity(NamedTuple):
    """The identity of a user, as a sender of commands or an owner of jobs: an owner in a group of a VO."""

    owner: str
    group: str
    vo: str


SLUG_LIMIT = 80
_HASH_DIGITS = 12
_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_HASHED = re.compile(rf".*-[0-9a-f]{{{_HASH_DIGITS}}}")
_FOREIGN = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=4_096)
def slug(name: str) -> str:
    """Return the name as a part of a topic's name: `a-z0-9-`, at most 80 characters, and different for different names.

    A name that has this form already is unchanged. Any other is put into lower case, other characters are replaced, and a hash of the original is
    added. A name that looks as if it ended with such a hash gets one too, since it could be the slug of another name.
    """
    if len(name) <= SLUG_LIMIT and _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name):
        return name
    clean = _FOREIGN.sub("-", name.lower())[: SLUG_LIMIT - _HASH_DIGITS - 1].strip("-") or "x"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{clean}-{digest[:_HASH_DIGITS]}"


def joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the same ids in the fewest ranges, in order. Both ends of a range are included. A range whose last id is below its first has no ids."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if low > high:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(
    ranges: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Return the ids that are in both inputs, as ranges. Each input is in order and without overlaps."""
    left, right = list(ranges), list(others)
    found: list[tuple[int, int]] = []
    while left and right:
        low, high = max(left[0][0], right[0][0]), min(left[0][1], right[0][1])
        if low <= high:
            found.append((low, high))
        (left if left[0][1] <= right[0][1] else right).pop(0)
    return tuple(found)


def beyond(ranges: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield as ranges the ids of `ranges` that are not in `others`. Both inputs are in order and without overlaps."""
    behind = iter([*others, (2**63, 2**63)])
    other = next(behind)
    for low, high in ranges:
        free = low
        while other[1] < free:
            other = next(behind)
        while other[0] <= high:
            if free < other[0]:
                yield free, other[0] - 1
            free = other[1] + 1
            if free > high:
                break
            other = next(behind)
        if free <= high:
            yield free, high
