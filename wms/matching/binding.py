"""Ties a pilot to one job by a reserved tag (`job:<id>`): the job's queue asks for the tag, and the pilot takes no other job.

A resource gets such a tag by its pilot's token alone; a reserved tag in a request is removed.
"""

from msgspec.structs import replace

from wms.ids import JobId
from wms.matching.grouping import Requirements
from wms.site import BOUND, Resource, demanded_tags


def tag_of(job_id: JobId) -> str:
    """Return the reserved tag that ties a pilot to this job."""
    return f"{BOUND}{job_id}"


def is_reserved(tag: str) -> bool:
    """Return whether a tag is reserved for tying a pilot to a job."""
    return tag.casefold().startswith(BOUND)


def bound(requirements: Requirements, job_id: JobId) -> Requirements:
    """Return requirements with the reserved tag of a job, so that only the pilot sent for this job fits them."""
    return replace(requirements, tags=(*free(requirements.tags), tag_of(job_id)))


def bound_like(requirements: Requirements, other: Requirements) -> Requirements:
    """Return requirements with the reserved tags of `other` in place of their own; unchanged if `other` has none."""
    reserved = tuple(filter(is_reserved, other.tags))
    return replace(requirements, tags=(*free(requirements.tags), *reserved)) if reserved else requirements


def is_bound(requirements: Requirements) -> bool:
    """Return whether the requirements have a reserved tag, so that only the pilot sent for the job fits them."""
    return any(map(is_reserved, requirements.tags))


def free(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags without those that are reserved for tying a pilot to a job."""
    return tuple(tag for tag in tags if not is_reserved(tag))


def restrained(resource: Resource, job_id: JobId | None) -> Resource:
    """Return a resource with only those reserved tags that its pilot's token allows: that of `job_id`, or none (None).

    A pilot tied to a job also requires the tag of every job, so that it is given no other.
    """
    if job_id is None:
        if not any(map(is_reserved, (*resource.tags, *resource.required_tags))):
            return resource
        return replace(resource, tags=free(resource.tags), required_tags=free(resource.required_tags))
    mine, demanded = tag_of(job_id), free(demanded_tags(resource.required_tags))
    return replace(resource, tags=(*free(resource.tags), mine), required_tags=(*demanded, mine))
