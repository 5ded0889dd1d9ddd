"""Grouping of jobs into task queues: jobs with identical requirements share a queue, and this module defines "identical"."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise

from msgspec import Struct, json
from msgspec.structs import replace

from wms.bounds import CpuTime, LongText, Megabytes, Name, Names
from wms.site import MAX_PROCESSORS, WHOLE_NODE, canonical, folded

DEFAULT_SEGMENTS = (500, 5_000, 50_000, 300_000)
HOUR = 3_600

_PROCESSORS = re.compile(r"([1-9][0-9]{0,3})processors", re.IGNORECASE)


class Requirements(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """What a job requires of a resource, and whose job it is; each distinct value has one task queue.

    `cpu_segment` is in seconds; `min_ram_mb`, `max_ram_mb` and `min_disk_mb` are in MB, 0 for none. `certificate_subject` and `fqans`
    come from the token; `fqans` are VOMS FQANs in the token's order, the first the primary one. `requirements` and `rank` are canonical
    texts of ClassAd expressions. `attributes` is the canonical text of an ad with the job's own attributes. All three are empty where
    there is none. The tuples are sets: order and duplicates are lost on construction. A tuple that contains "any" counts as empty.
    """

    owner: Name
    owner_group: Name
    vo: Name
    setup: Name
    cpu_segment: CpuTime
    submit_pools: Names = ()
    pilot_types: Names = ()
    sites: Names = ()
    banned_sites: Names = ()
    grid_ces: Names = ()
    grid_middlewares: Names = ()
    platforms: Names = ()
    job_types: Names = ()
    tags: Names = ()
    min_ram_mb: Megabytes = 0
    requirements: LongText = ""
    rank: LongText = ""
    attributes: LongText = ""
    max_ram_mb: Megabytes = 0
    min_disk_mb: Megabytes = 0
    certificate_subject: LongText = ""
    fqans: Names = ()

    def __post_init__(self) -> None:
        canonical(
            self,
            named_sets=(
                "submit_pools", "pilot_types", "sites", "grid_ces", "grid_middlewares", "platforms", "job_types",
            ),
            plain_sets=("banned_sites", "tags"),
        )  # fmt: skip


NAMED_SETS = (
    "submit_pools", "pilot_types", "sites", "banned_sites", "grid_ces", "grid_middlewares", "platforms",
)  # fmt: skip
"""The fields with sets of names whose case nobody sees. Clauses compare all names without regard to case, but expressions of sites can tell
the case of a job's type and tags apart (`wms.matching.ads.JOB`). So these are not among them."""


def without_case(requirements: Requirements) -> Requirements:
    """Return requirements with names in lower case; equal if all clauses and expressions see the same, whatever the case of names."""
    sets = {name: folded(values) for name in NAMED_SETS if (values := getattr(requirements, name))}
    return replace(requirements, **sets)


def key(requirements: Requirements) -> bytes:
    """Return the 32 bytes that identify a task queue: equal exactly for requirements that all clauses and expressions see alike.

    Fields with their default value do not count, so that a field added later changes no existing key.
    """
    return sha256(json.encode(without_case(requirements))).digest()


def checked_segments(segments: Iterable[int]) -> tuple[int, ...]:
    """Return CPU segments as a tuple; raise ValueError if there is none, or if they are not positive and increasing.

    A CPU segment is a value, in seconds, to which the CPU times of jobs are rounded up.
    """
    bounds = tuple(segments)
    if not bounds or bounds[0] < 1 or any(low >= high for low, high in pairwise(bounds)):
        raise ValueError(f"CPU segments must be positive and increase: {bounds}")
    return bounds


def segment(cpu_time: int, segments: tuple[int, ...] = DEFAULT_SEGMENTS) -> int:
    """Return the CPU segment of a job: the smallest of `segments`, in seconds, that is at least `cpu_time`.

    Beyond the largest it is `cpu_time` in whole hours, rounded up: no job may begin where it has less time than it asks for.
    """
    at = bisect_left(segments, cpu_time)
    return segments[at] if at < len(segments) else -(-cpu_time // HOUR) * HOUR


def processor_tags(processors: int) -> tuple[str, ...]:
    """Return the tags that a job for `processors` processors requires of a resource; none for one processor.

    Raise ValueError outside of 1 to 1024. The tags that a resource offers are `wms.site.offered_tags`.
    """
    if not 1 <= processors <= MAX_PROCESSORS:
        raise ValueError(f"processors must be 1 to {MAX_PROCESSORS}, not {processors}")
    return (f"{processors}Processors", "MultiProcessor") if processors > 1 else ()


def node_tags(*, several: bool, whole: bool) -> tuple[str, ...]:
    """Return the tags that a job requires if it may use `several` processors, or wants a `whole` node."""
    return ((WHOLE_NODE,) if whole else ()) + (("MultiProcessor",) if several or whole else ())


def wants_whole_node(requirements: Requirements) -> bool:
    """Return whether the tags of the requirements ask for a whole node."""
    return WHOLE_NODE.casefold() in folded(requirements.tags)


def processors_needed(requirements: Requirements) -> int:
    """Return how many processors the requirements ask for: the largest number n in tags of the form nProcessors; 1 without such a tag."""
    return _processors_named(requirements.tags) if requirements.tags else 1


def slots_needed(requirements: Requirements) -> int:
    """Return how many slots of a pilot a job takes: one for each processor.

    A job for a whole node takes 1024, which means all of them.
    """
    return MAX_PROCESSORS if wants_whole_node(requirements) else processors_needed(requirements)


@lru_cache(maxsize=16_384)
def _processors_named(tags: tuple[str, ...]) -> int:
    found = (_PROCESSORS.fullmatch(tag) for tag in tags)
    return max((int(match[1]) for match in found if match), default=1)
