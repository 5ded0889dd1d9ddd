"""Translates the resources that a Snakemake rule requests into a job description."""

import math
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from wms.errors import Rejected
from wms.jobdesc.description import MIB, JobDescription

LISTS = ("sites", "banned_sites", "platforms", "tags")
"""Fields of a description that a resource may set, as a list with commas: `wms_sites="CERN,RAL"`."""
TEXTS = ("requirements", "rank", "job_type")
PREFIX = "wms_"
OWN_MEMORY_MB = 512
"""MiB by which a job's memory limit exceeds its rule's memory, for the Snakemake process that runs the rule."""
_MB = 1_000_000
GPUS = ("gpu", "gpus", "nvidia_gpu")
NOT_CARRIED_OUT = (
    "gpu_model",
    "gpu_manufacturer",
    "amd_gpu",
    "intel_gpu",
    "gres",
    "constraint",
    "mpi",
    "nodes",
    "tasks",
)
"""Resources that would change where a job may run, and that no field of a description can tell. One node and one task are as usual."""


def with_needs(
    base: JobDescription, threads: int, resources: Mapping[str, Any], *, own_directory: bool
) -> JobDescription:
    """Return the description with the requirements of a Snakemake job.

    `mem_mb` and `disk_mb` are in MB, `mem_mib` and `disk_mib` in MiB, `runtime` in minutes. Disk counts only if the job has its own directory.
    `mem_mb_per_cpu` counts for each thread. `gpu`, `gpus` and `nvidia_gpu` become `gpus`. Resources such as
    `wms_sites` set the field of the description that follows `wms_`.

    Raise Rejected if a resource begins with `wms_` and names no such field, or if the job would run without what the resource demands.
    """
    _check(resources)
    runtime = _number(resources, "runtime")
    wall_time = base.wall_time if runtime is None else math.ceil(runtime * 60)
    each = _mebibytes(resources, "mem", "_per_cpu")
    memory = each * max(1, threads) if each else _mebibytes(resources, "mem")
    return replace(
        base,
        processors=max(1, threads),
        memory_mb=memory or base.memory_mb,
        max_memory_mb=memory + OWN_MEMORY_MB if memory else base.max_memory_mb,
        disk_mb=(_mebibytes(resources, "disk") if own_directory else None) or base.disk_mb,
        wall_time=wall_time,
        cpu_time=max(base.cpu_time, (wall_time or 0) * max(1, threads)),
        **_own(resources),
    )


def _number(resources: Mapping[str, Any], name: str) -> float | None:
    said = resources.get(name)
    return float(said) if isinstance(said, int | float) and said > 0 else None


def _check(resources: Mapping[str, Any]) -> None:
    """Raise Rejected if a resource demands what no job can be given."""
    unclear = [
        name for name in (*GPUS, "mem_mb_per_cpu") if not isinstance(resources.get(name, 0), int | float)
    ]
    other = [name for name in NOT_CARRIED_OUT if resources.get(name) not in (None, "", 0)]
    usual = [name for name in ("nodes", "tasks") if resources.get(name) == 1]
    if refused := [*unclear, *(name for name in other if name not in usual)]:
        said = f"{refused[0]}={resources[refused[0]]}"
        raise Rejected(
            "UNMET_RESOURCE", f"no job can be given {said}", "say it by wms_requirements or wms_tags"
        )


def _mebibytes(resources: Mapping[str, Any], what: str, end: str = "") -> int | None:
    exact, decimal = _number(resources, f"{what}_mib{end}"), _number(resources, f"{what}_mb{end}")
    if exact is not None:
        return math.ceil(exact)
    return None if decimal is None else math.ceil(decimal * _MB / MIB)


def _own(resources: Mapping[str, Any]) -> dict[str, Any]:
    said = {name.removeprefix(PREFIX): value for name, value in resources.items() if name.startswith(PREFIX)}
    unknown = sorted(said.keys() - {*LISTS, *TEXTS})
    if unknown:
        known = ", ".join(PREFIX + name for name in (*LISTS, *TEXTS))
        raise Rejected("UNKNOWN_RESOURCE", f"wms knows no resource {PREFIX}{unknown[0]}", f"one of {known}")
    lists = {name: _listed(said[name]) for name in LISTS if name in said}
    texts = {name: str(said[name]) for name in TEXTS if name in said}
    gpus = max((_number(resources, name) or 0 for name in GPUS), default=0)
    return {**lists, **texts, **({"gpus": math.ceil(gpus)} if gpus else {})}


def _listed(value: object) -> tuple[str, ...]:
    return tuple(part.strip() for part in str(value).split(",") if part.strip())
