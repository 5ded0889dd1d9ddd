"""From a job description and the identity of a token to what its task queue requires."""

from wms.jobdesc.description import JobDescription
from wms.taskqueue.grouping import Requirements, processor_tags, segment


def requirements_of(
    description: JobDescription, owner: str, owner_group: str, vo: str, segments: tuple[int, ...]
) -> Requirements:
    """Return the requirements that the job shares its task queue with others by."""
    return Requirements(
        owner=owner,
        owner_group=owner_group,
        vo=vo,
        setup=description.setup,
        cpu_segment=segment(description.cpu_time, segments),
        submit_pools=description.submit_pools,
        pilot_types=description.pilot_types,
        sites=description.sites,
        banned_sites=description.banned_sites,
        grid_ces=description.grid_ces,
        platforms=description.platforms,
        job_types=(description.job_type,),
        tags=(*description.tags, *processor_tags(description.processors)),
        min_ram_mb=description.memory_mb or 0,
    )
