"""From a job description and the identity of a token to the task queue of its job."""

from functools import lru_cache

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.jobdesc.description import JobDescription
from wms.taskqueue.grouping import Requirements, key, processor_tags, segment

Names = tuple[str, ...]


def requirements_of(
    description: JobDescription, owner: str, owner_group: str, vo: str, segments: tuple[int, ...]
) -> Requirements:
    """Return the requirements that the job shares its task queue with others by."""
    return _requirements(
        (owner, owner_group, vo, description.setup, description.job_type),
        (segment(description.cpu_time, segments), description.processors, description.memory_mb or 0),
        (
            description.submit_pools,
            description.pilot_types,
            description.sites,
            description.banned_sites,
            description.grid_ces,
            description.platforms,
            description.tags,
        ),
        _expressions(description),
    )


def _expressions(description: JobDescription) -> tuple[str, str, str]:
    """Return the canonical texts: one queue for jobs that differ in spaces, brackets and the case of names alone."""
    wanted, rank, attributes = description.requirements, description.rank, description.attributes
    if not (wanted or rank or attributes):
        return _NONE
    return (
        Expression.parse(wanted).text if wanted else "",
        Expression.parse(rank).text if rank else "",
        Ad.of(attributes).text if attributes else "",
    )


_NONE = ("", "", "")


# Jobs come by the thousand and differ in what they do, not in what they require.
@lru_cache(maxsize=10_000)
def _requirements(
    names: tuple[str, str, str, str, str],
    amounts: tuple[int, int, int],
    sets: tuple[Names, ...],
    expressions: tuple[str, str, str],
) -> Requirements:
    owner, owner_group, vo, setup, job_type = names
    cpu_segment, processors, memory_mb = amounts
    wanted, rank, attributes = expressions
    submit_pools, pilot_types, sites, banned_sites, grid_ces, platforms, tags = sets
    return Requirements(
        owner=owner,
        owner_group=owner_group,
        vo=vo,
        setup=setup,
        cpu_segment=cpu_segment,
        submit_pools=submit_pools,
        pilot_types=pilot_types,
        sites=sites,
        banned_sites=banned_sites,
        grid_ces=grid_ces,
        platforms=platforms,
        job_types=(job_type,),
        tags=(*tags, *processor_tags(processors)),
        min_ram_mb=memory_mb,
        requirements=wanted,
        rank=rank,
        attributes=attributes,
    )


key_of = lru_cache(maxsize=10_000)(key)
"""The key of a task queue, remembered: the hash of a `Requirements` is."""
