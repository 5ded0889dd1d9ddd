"""The clauses (rules) that decide whether a task queue fits a resource: one list for matching and for explaining a mismatch.

A clause reads one part of the requirements and the resource, and nothing else. So the index can judge each distinct part once for
a resource and gather the verdicts over all queues. `fits` and `explain` walk the same list for one queue.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from wms.jobdesc.gpus import gpus_needed
from wms.matching.ads import job_attributes
from wms.matching.grouping import Requirements, processors_needed, wants_whole_node
from wms.matching.node_facts import with_gpus
from wms.matching.two_sided import asked, job_says, job_wants, site_says, site_wants
from wms.site import (
    GENERIC,
    PRIVATE,
    WHOLE_NODE,
    PilotOwner,
    Resource,
    demanded_tags,
    folded,
    is_wild,
    private,
)


class Mismatch(Struct, frozen=True):
    """A clause that fails for a job and a resource: its name, and a text with the two values that disagree."""

    clause: str
    detail: str


Negative = Callable[[Requirements, Resource], Mismatch | None]
"""A further check that may exclude a queue from a resource, such as a limit.

It returns None if it does not exclude the queue, else the reason. One check that returns a reason excludes the queue.
"""


class Clause(NamedTuple):
    """One rule of the fit: a function for the part of requirements that it reads, its test, and a function for the text of a mismatch."""

    name: str
    part: Callable[[Requirements], Hashable]
    holds: Callable[[Any, Resource], bool]
    detail: Callable[[Any, Resource], str]


def _one_of(value: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or is_wild(value) or value.casefold() in folded(wanted)


def _any_of(values: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return not wanted or not values or not set(folded(values)).isdisjoint(folded(wanted))


def _common(names: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.casefold() in folded(others)]


def _undemanded(tags: tuple[str, ...], resource: Resource) -> list[str]:
    """Return the tags that a resource requires of jobs and that are missing in `tags`."""
    demanded = demanded_tags(resource.required_tags)
    return [tag for tag in demanded if tag.casefold() not in folded(tags)]


def _owner_holds(part: tuple[str, str], resource: Resource) -> bool:
    group, owner = part
    if resource.generic:
        return True
    return group == resource.owner_group and (resource.job_sharing or owner == resource.owner)


def _type_holds(types: tuple[str, ...], resource: Resource) -> bool:
    """Return whether a job's pilot types admit a pilot: "private" and "generic" by its owner, any other name by the site's pilot type."""
    wanted = set(folded(types))
    if not wanted or (GENERIC if resource.generic else PRIVATE) in wanted:
        return True
    named = wanted - {PRIVATE, GENERIC}
    return bool(named) and (is_wild(resource.pilot_type) or resource.pilot_type.casefold() in named)


def _type_of(resource: Resource) -> str:
    kind = GENERIC if resource.generic else PRIVATE
    return kind if is_wild(resource.pilot_type) else f"{kind} and of type {resource.pilot_type}"


def _listed(values: Sequence[str], most: int = 5) -> str:
    more = len(values) - most
    return ", ".join(values[:most]) + (f" and {more} more" if more > 0 else "")


OF_JOBS_AD, OF_SITES_AD = "requirements", "site requirements"

CLAUSES = (
    Clause(
        "setup",
        lambda r: r.setup,
        lambda setup, at: setup == at.setup,
        lambda setup, at: f"the job is of setup {setup!r}, the resource of {at.setup!r}",
    ),
    Clause(
        "vo",
        lambda r: r.vo,
        lambda vo, at: vo == at.vo,
        lambda vo, at: f"the job is of VO {vo!r}, the pilot of {at.vo!r}",
    ),
    Clause(
        "owner",
        lambda r: (r.owner_group, r.owner),
        _owner_holds,
        lambda part, at: (
            f"a private pilot of {at.owner}@{at.owner_group} takes no job of {part[1]}@{part[0]}"
        ),
    ),
    Clause(
        "pilot type",
        lambda r: r.pilot_types,
        _type_holds,
        lambda types, at: f"the job takes pilots of type {_listed(types)}, this is {_type_of(at)}",
    ),
    Clause(
        "site",
        lambda r: r.sites,
        lambda sites, at: _one_of(at.site, sites),
        lambda sites, at: f"the job may run at {_listed(sites)}, this is {at.site}",
    ),
    Clause(
        "banned site",
        lambda r: r.banned_sites,
        lambda banned, at: is_wild(at.site) or at.site.casefold() not in folded(banned),
        lambda _, at: f"the job bans {at.site}",
    ),
    Clause(
        "grid CE",
        lambda r: r.grid_ces,
        lambda ces, at: _one_of(at.grid_ce, ces),
        lambda ces, at: f"the job may run on {_listed(ces)}, this is {at.grid_ce}",
    ),
    Clause(
        "platform",
        lambda r: r.platforms,
        lambda platforms, at: _any_of(at.platforms, platforms),
        lambda platforms, at: (
            f"the job needs {_listed(platforms)}, the resource runs {_listed(at.platforms)}"
        ),
    ),
    Clause(
        "job type",
        lambda r: r.job_types,
        lambda types, at: _any_of(at.job_types, types),
        lambda types, at: f"the job is of type {_listed(types)}, the resource takes {_listed(at.job_types)}",
    ),
    Clause(
        "banned job type",
        lambda r: r.job_types,
        lambda types, at: not _common(types, at.banned_job_types),
        lambda types, at: f"the resource bans {_listed(_common(types, at.banned_job_types))}",
    ),
    Clause(
        "tags",
        lambda r: r.tags,
        lambda tags, at: not at.lacking(tags),
        lambda tags, at: f"the resource lacks {_listed(at.lacking(tags))}",
    ),
    Clause(
        "required tags",
        lambda r: r.tags,
        lambda tags, at: not _undemanded(tags, at),
        lambda tags, at: f"the resource takes only jobs with {_listed(_undemanded(tags, at))}",
    ),
    Clause(
        "memory",
        lambda r: r.min_ram_mb,
        lambda megabytes, at: megabytes <= at.memory_mb,
        lambda megabytes, at: f"the job needs {megabytes} MB, the resource has {at.memory_mb or 'not said'}",
    ),
    Clause(
        "disk",
        lambda r: r.min_disk_mb,
        lambda megabytes, at: not at.disk_mb or megabytes <= at.disk_mb,
        lambda megabytes, at: f"the job needs {megabytes} MB of disk, the resource has {at.disk_mb} MB free",
    ),
    Clause(OF_JOBS_AD, asked, job_wants, job_says),
    Clause(OF_SITES_AD, job_attributes, site_wants, site_says),
)
"""All clauses except the one on CPU time. That one is separate because jobs are drawn by CPU segment, the longest first."""

CPU_TIME = Clause(
    "CPU time",
    lambda r: r.cpu_segment,
    lambda seconds, at: seconds <= at.cpu_time,
    lambda seconds, at: f"the job needs {seconds} s, the resource has {at.cpu_time} s left",
)

_ALL = (*CLAUSES, CPU_TIME)

OF_NAMES = {"site": "site", "banned site": "site", "grid CE": "grid_ce"}
"""The clauses that read only the resource's site or computing element, with the name of that field of `Resource`."""

OF_ADS = frozenset({OF_JOBS_AD, OF_SITES_AD})
"""The names of the clauses that evaluate ClassAd requirements: the job's and the site's."""

_OF_OWNERS = tuple(each for each in CLAUSES if each.name in ("owner", "pilot type"))


def serves_whom(requirements: Requirements, pilot: Resource | PilotOwner | None) -> bool:
    """Return whether a pilot may run jobs with these requirements, judged only by the pilot's owner and type.

    None stands for a generic pilot, which serves all owners of the jobs' VO.
    """
    at = pilot if isinstance(pilot, Resource) else _serving(pilot)
    return all(each.holds(each.part(requirements), at) for each in _OF_OWNERS)


@lru_cache(maxsize=4_096)
def _serving(owner: PilotOwner | None) -> Resource:
    generic = Resource(setup="", vo="", cpu_time=0)
    return generic if owner is None else private(generic, owner, job_sharing=not owner.owner)


def takes_private_alone(requirements: Requirements) -> bool:
    """Return whether jobs with these requirements may run on private pilots (of their own owner or group) only."""
    return folded(requirements.pilot_types) == (PRIVATE,)


Parts = list[tuple[Clause, Hashable]]


def refusal(resource: Resource) -> Mismatch | None:
    """Return why a resource can be given no job at all, because its description contradicts itself; None if it is consistent."""
    fault = resource.fault()
    return Mismatch("resource", fault) if fault else None


def fits(
    requirements: Requirements, resource: Resource, negatives: Sequence[Negative] = ()
) -> Mismatch | None:
    """Return None if a task queue with these requirements fits a resource, else the first clause or negative that fails."""
    refused = refusal(resource)
    if refused:
        return refused
    for clause in _ALL:
        part = clause.part(requirements)
        if not clause.holds(part, resource):
            return Mismatch(clause.name, clause.detail(part, resource))
    return next((no for negative in negatives if (no := negative(requirements, resource))), None)


def parts(requirements: Requirements) -> Parts:
    """Return each clause with the part of the requirements that it reads, to be used for many resources in `failing_parts`."""
    return [(clause, clause.part(requirements)) for clause in _ALL]


def failing_parts(asked: Parts, resource: Resource) -> list[Mismatch]:
    """Return all clauses that fail at a resource, for requirements given by `parts`; the resource must have no `refusal`."""
    return [
        Mismatch(clause.name, clause.detail(part, resource))
        for clause, part in asked
        if not clause.holds(part, resource)
    ]


def left_over(resource: Resource, requirements: Requirements) -> Resource | None:
    """Return what remains of a resource beside a job that takes its processors, memory, disk and GPUs.

    Return None if no processor remains or the job takes the whole node. For a pilot that asks for several jobs at once, each job is
    drawn for what the jobs before it leave.
    """
    processors = resource.processors - processors_needed(requirements)
    if processors <= 0 or wants_whole_node(requirements):
        return None
    memory = max(0, resource.memory_mb - requirements.min_ram_mb)
    # 0 would say that nothing is known of its disk.
    disk = max(1, resource.disk_mb - requirements.min_disk_mb) if resource.disk_mb else 0
    return _with_less(resource, processors, memory, disk, gpus_needed(requirements.requirements))


def beside_others(resource: Resource, processors: int, memory_mb: int) -> Resource:
    """Return a resource reduced to the given number of free processors and free memory in MB.

    If fewer processors are free than it has, other jobs run there, so it loses the tag of a whole node.
    """
    if processors == resource.processors:
        return replace(resource, memory_mb=memory_mb)
    return _with_less(resource, processors, memory_mb, resource.disk_mb)


@lru_cache(maxsize=16_384)
def _with_less(resource: Resource, processors: int, memory_mb: int, disk_mb: int, gpus: int = 0) -> Resource:
    # Remembered, since the same few come from each request of a pilot, and are then found by what they are.
    # What runs another job has no whole node to give.
    tags = tuple(tag for tag in resource.tags if tag.casefold() != WHOLE_NODE.casefold())
    node = with_gpus(resource.node, lambda free: free - gpus) if gpus else resource.node
    return replace(
        resource, processors=processors, memory_mb=memory_mb, disk_mb=disk_mb, tags=tags, node=node
    )
