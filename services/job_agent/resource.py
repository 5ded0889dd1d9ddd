"""What the agent offers a job: the resource description of its requests."""

from wms.runtime.machine import look
from wms.runtime.pilot_config import PilotConfig
from wms.site import Resource, Told


def memory_mb(config: PilotConfig) -> int:
    """Return what memory the pilot has for all its jobs."""
    return config.resource.memory_mb or look().memory_mb


def describe(
    config: PilotConfig,
    *,
    free: int,
    memory_taken_mb: int,
    seconds_left: float,
    unfit: tuple[str, ...] = (),
    node: Told = (),
) -> Resource:
    """Return what `free` slots offer now, beside what the running jobs asked for."""
    resource = config.resource
    return Resource(
        setup=resource.setup,
        vo=config.pilot.vo,
        cpu_time=max(0, min(resource.cpu_time, int(seconds_left))),
        site=config.pilot.site,
        grid_ce=config.pilot.ce,
        pilot_type=resource.pilot_type,
        platforms=tuple(resource.platforms) or look().platforms,
        job_types=tuple(resource.job_types),
        memory_mb=max(0, memory_mb(config) - memory_taken_mb),
        processors=free,
        tags=tuple(resource.tags),
        required_tags=tuple(resource.required_tags),
        unfit=unfit,
        node=node,
    )
