"""Makes the order for the shepherd to start a payload, from the job description, the payload's directories and its limits."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from services.job_agent.payload.environment import GPUS
from services.job_agent.payload.image_runtime import OF_THE_NODE, ContainedPayload
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import PayloadLimits, kernel_limits
from services.job_agent.payload.shepherd_messages import SpawnOrder
from services.job_agent.payload.workdir import SCRATCH, WORK, Workdir
from wms.jobdesc.description import JobDescription

STAGER_MEMORY: Final = 1024**3
"""The most bytes of memory of a stager. It reads names of files, and a small part of each file at a time."""
STAGER_SECONDS: Final = 3_600
"""The most seconds of CPU time of a stager."""


def spawn_order(
    description: JobDescription,
    place: Workdir,
    limits: PayloadLimits,
    program: str,
    environment: dict[str, str],
    *,
    deadline: float | None,
    cgroup: str = "",
    given: Mapping[str, str] = MappingProxyType({}),
    cpus: tuple[int, ...] = (),
) -> SpawnOrder:
    """Return the order to start `program` as the payload that `description` describes, in its directory `place`.

    The payload is killed at `deadline`, in seconds since boot; None: never. `cgroup` is the directory of its cgroup; empty:
    it has none. `given` are texts of secret files for its scratch directory, by name. `cpus` are the numbers of its
    processors; empty: all.
    """
    return SpawnOrder(
        argv=(program, *description.arguments),
        cwd=str(place.work),
        env=environment,
        scratch=str(place.scratch),
        stdout=str(place.stdout.path),
        stderr=str(place.stderr.path),
        stdin=str(place.work / description.stdin) if description.stdin else "",
        stdout_capture=description.stdout_limit,
        stderr_capture=description.stderr_limit,
        given=dict(given),
        cpus=cpus,
        rlimits=_rlimits(limits),
        deadline=deadline,
        memory=limits.memory_bytes or 0,
        tasks=limits.tasks,
        has_network=description.network == "node",
        cgroup=cgroup,
        cgroup_limits=kernel_limits(limits, in_image=bool(description.container)) if cgroup else {},
    )


def _rlimits(limits: PayloadLimits) -> dict[str, int]:
    bounds = {"NPROC": limits.processes, "FSIZE": limits.file_bytes}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def stager_order(
    directory: Path, limits: PayloadLimits, *, deadline: float | None, cgroup: str = ""
) -> SpawnOrder:
    """Return the order to start the stager of a payload, in the payload's directory and under its limits."""
    return SpawnOrder(
        argv=("stager",),
        cwd=str(directory / WORK),
        env={},
        scratch=str(directory / SCRATCH),
        stdout="",
        stderr="",
        is_stager=True,
        disk_bytes=limits.disk_bytes,
        rlimits=_rlimits(limits) | {"DATA": STAGER_MEMORY, "CPU": STAGER_SECONDS},
        deadline=deadline,
        tasks=limits.tasks,
        cgroup=cgroup,
        cgroup_limits=kernel_limits(limits, in_image=True) if cgroup else {},
    )


def contained(
    order: SpawnOrder, description: JobDescription, place: Workdir, isolation: PayloadIsolation
) -> ContainedPayload:
    """Return the payload with the settings of the container in which it is to run. The image is the one that `description` names.

    `order` is the order for the payload without a container.
    """
    return ContainedPayload(
        order=msgspec.structs.replace(order, env=_of_image(order.env, description.environment)),
        image=description.container,
        has_network=order.has_network,
        has_gpus=bool(order.env.get(GPUS)),
        hidden=isolation.hidden,
        directory=place.directory,
        shm_mb=isolation.shm_mb,
    )


def _of_image(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables in `environment` for a container: without those that describe the node, unless the job sets them.

    `own` are the variables of the job description.
    """
    return {name: value for name, value in environment.items() if name in own or name not in OF_THE_NODE}
