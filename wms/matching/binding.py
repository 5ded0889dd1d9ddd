"""The binding of a pilot to one job by a reserved tag: the job's queue asks for the tag, and the pilot takes nothing else.

A resource has such a tag by its pilot's token alone: what a request says of it is overruled.
"""

from msgspec.structs import replace

from wms.ids import JobId
from wms.matching.grouping import Requirements
from wms.site import BOUND, Resource, demanded_tags


def tag_of(job_id: JobId) -> str:
    """Return the reserved tag of a job."""
    return f"{BOUND}{job_id}"


def is_reserved(tag: str) -> bool:
    """Return whether a tag binds a pilot to a job."""
    return tag.casefold().startswith(BOUND)


def bound(requirements: Requirements, job_id: JobId) -> Requirements:
    """Return the requirements of one job alone: only the pilot that is bound to it has the tag."""
    return replace(requirements, tags=(*free(requirements.tags), tag_of(job_id)))


def bound_like(requirements: Requirements, other: Requirements) -> Requirements:
    """Return the requirements with the reserved tags of the other ones."""
    reserved = tuple(filter(is_reserved, other.tags))
    return replace(requirements, tags=(*free(requirements.tags), *reserved)) if reserved else requirements


def is_bound(requirements: Requirements) -> bool:
    """Return whether only a pilot of its own gets the job with these requirements."""
    return any(map(is_reserved, requirements.tags))


def free(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags without reserved ones."""
    return tuple(tag for tag in tags if not is_reserved(tag))


def restrained(resource: Resource, job_id: JobId | None) -> Resource:
    """Return the resource with the reserved tags that its pilot's token allows: that of `job_id`, or none.

    A bound pilot demands its tag of every job, so that it is given no other.
    """
    if job_id is None:
        if not any(map(is_reserved, (*resource.tags, *resource.required_tags))):
            return resource
        return replace(resource, tags=free(resource.tags), required_tags=free(resource.required_tags))
    mine, demanded = tag_of(job_id), free(demanded_tags(resource.required_tags))
    return replace(resource, tags=(*free(resource.tags), mine), required_tags=(*demanded, mine))
