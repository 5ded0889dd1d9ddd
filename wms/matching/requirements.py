"""Derives the requirements of a job from its description and its owner's identity; they are the key of its task queue."""

from functools import lru_cache
from typing import NamedTuple

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.jobdesc.description import JobDescription
from wms.jobdesc.sam_stations import required_text
from wms.matching.grouping import Requirements, key, node_tags, processor_tags, segment
from wms.site import CONTAINER, PRIVATE_NETWORK, folded

Names = tuple[str, ...]


class Credentials(NamedTuple):
    """Attributes of a user's token besides owner, group and VO: the certificate's subject and the VOMS FQANs.

    Expressions of sites may reference them.
    """

    certificate_subject: str = ""
    fqans: Names = ()


_NO_CREDENTIALS = Credentials()


class _Amounts(NamedTuple):
    cpu_segment: int
    min_ram_mb: int
    max_ram_mb: int
    min_disk_mb: int


class _Sets(NamedTuple):
    submit_pools: Names
    pilot_types: Names
    sites: Names
    banned_sites: Names
    grid_ces: Names
    grid_middlewares: Names
    platforms: Names
    job_types: Names
    tags: Names


class _Expressions(NamedTuple):
    """Canonical texts of a job's expressions and of its attributes; empty where it has none."""

    requirements: str = ""
    rank: str = ""
    attributes: str = ""


_NO_EXPRESSIONS = _Expressions()


def requirements_of(
    description: JobDescription,
    owner: str,
    owner_group: str,
    vo: str,
    segments: tuple[int, ...],
    *,
    credentials: Credentials = _NO_CREDENTIALS,
) -> Requirements:
    """Return the requirements of a job; jobs with equal requirements share a task queue. Raise Rejected for malformed expressions.

    `segments` are the CPU times, in seconds, to which the job's CPU time is rounded up.
    """
    return _requirements(
        (owner, owner_group, vo, description.setup, credentials),
        _Amounts(
            segment(description.cpu_time, segments),
            description.memory_mb or 0,
            description.max_memory_mb or 0,
            description.disk_mb or 0,
        ),
        _Sets(
            description.submit_pools,
            description.pilot_types,
            wanted_sites(description),
            description.banned_sites,
            description.grid_ces,
            description.grid_middlewares,
            description.platforms,
            (description.job_type,),
            tags_of(description),
        ),
        _expressions(description),
    )


def wanted_sites(description: JobDescription) -> Names:
    """Return the sites that a job names, without those it bans, as DIRAC does; empty if it names none."""
    if not description.sites or not description.banned_sites:
        return description.sites
    banned = folded(description.banned_sites)
    return tuple(site for site in description.sites if site.casefold() not in banned)


def tags_of(description: JobDescription) -> Names:
    """Return the tags that a job requires of a resource: its own, and those for its processors, a whole node, a container and no network."""
    own = description.tags + _isolation_tags(description)
    if description.min_processors is not None:
        own += processor_tags(description.min_processors)
        own += node_tags(several=description.max_processors != 1, whole=description.whole_node)
        return own
    return (
        own + processor_tags(description.processors) + node_tags(several=False, whole=description.whole_node)
    )


def _isolation_tags(description: JobDescription) -> Names:
    if description.container:
        return (CONTAINER,)
    return (PRIVATE_NETWORK,) if description.network == "none" else ()


def _expressions(description: JobDescription) -> _Expressions:
    """Return the canonical texts of a job's expressions, so that jobs share a queue if these differ only in spaces, brackets and case."""
    wanted, rank, attributes = description.requirements, description.rank, description.attributes
    if not (wanted or rank or attributes or description.stations or description.gpus):
        return _NO_EXPRESSIONS
    return _Expressions(
        required_text(wanted, description.stations, description.gpus),
        Expression.parse(rank).text if rank else "",
        Ad.of(attributes).text if attributes else "",
    )


# Jobs come by the thousand and differ in what they do, not in what they require.
@lru_cache(maxsize=10_000)
def _requirements(
    whose: tuple[str, str, str, str, Credentials], amounts: _Amounts, sets: _Sets, expressions: _Expressions
) -> Requirements:
    owner, owner_group, vo, setup, credentials = whose
    return Requirements(
        owner=owner,
        owner_group=owner_group,
        vo=vo,
        setup=setup,
        **amounts._asdict(),
        **sets._asdict(),
        **expressions._asdict(),
        **credentials._asdict(),
    )


key_of = lru_cache(maxsize=10_000)(key)
"""Return the key of the task queue for these `Requirements`, from a cache."""
