"""Describes what a pilot offers to jobs in its match requests: memory, disk, processors, platforms and tags."""

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from wms.runtime.machine import MIB, free_disk_mb, look, two_digits
from wms.runtime.pilot_config import PilotConfig
from wms.site import CONTAINER, PRIVATE_NETWORK, WHOLE_NODE, Resource, Told, folded


def memory_mb(config: PilotConfig) -> int:
    """Return the memory in MiB that the pilot has for all its jobs: the configured value, or the machine's if that is 0."""
    return config.resource.memory_mb or look().memory_mb


def disk_mb(config: PilotConfig, taken_mb: int = 0) -> int:
    """Return the free disk space in MiB for one more job. 0 if the disk cannot be read, else at least 1.

    `taken_mb` is what jobs of this pilot requested. It is subtracted from the space that was free at the first call; the
    space that is free now is the upper limit. The result is rounded down to two digits, since each new value costs the
    matcher work.
    """
    directory = config.pilot.directory
    free = free_disk_mb(directory)
    if not free:
        return 0
    return max(1, two_digits(min(free, _free_at_first(directory) - taken_mb)))


def disk_share(config: PilotConfig) -> int | None:
    """Return the bytes on disk that a job may use for each slot if it requests no disk: an equal part of what is free now.

    None if the disk cannot be read. The pilot's directory need not exist yet.
    """
    place = Path(config.pilot.directory).absolute()
    free = free_disk_mb(str(next(each for each in (place, *place.parents) if each.exists())))
    return free * MIB // max(config.pilot.slots, 1) if free else None


@cache
def _free_at_first(directory: str) -> int:
    return free_disk_mb(directory)


def proved(config: PilotConfig, *, runs_containers: bool, cuts_network: bool) -> PilotConfig:
    """Return the configuration without the tags whose trials failed on this node.

    `runs_containers` says whether a program runs containers of images here, `cuts_network` whether payloads can run without
    a network.
    """
    trials = ((CONTAINER, runs_containers), (PRIVATE_NETWORK, cuts_network))
    failed = {tag.casefold() for tag, succeeded in trials if not succeeded}
    tags = [each for each in config.resource.tags if each.casefold() not in failed]
    return replace(config, resource=replace(config.resource, tags=tags))


def promises_containers(config: PilotConfig) -> bool:
    """Return whether the configuration has the tag for containers: the pilot's computing element says that its nodes run them."""
    return CONTAINER.casefold() in folded(tuple(config.resource.tags))


def _tags(config: PilotConfig, free: int) -> tuple[str, ...]:
    """Return the pilot's tags for match requests. If fewer than all slots are `free`, the tag for whole nodes is left out."""
    tags = config.resource.tags
    if free >= config.pilot.slots:
        return tuple(tags)
    return tuple(tag for tag in tags if tag.casefold() != WHOLE_NODE.casefold())


def describe(
    config: PilotConfig,
    *,
    free: int,
    memory_taken_mb: int,
    disk_taken_mb: int = 0,
    seconds_left: float,
    node: Told = (),
) -> Resource:
    """Return what the pilot offers to jobs now, with `free` slots, for a match request.

    `memory_taken_mb` and `disk_taken_mb` (MiB) are what the jobs that it holds requested. `seconds_left` of the pilot's
    lifetime limit the CPU time. `node` has the measured properties of its node.
    """
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
        disk_mb=disk_mb(config, disk_taken_mb),
        processors=free,
        tags=_tags(config, free),
        required_tags=tuple(resource.required_tags),
        node=node,
    )
