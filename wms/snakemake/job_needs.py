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


def with_needs(
    base: JobDescription, threads: int, resources: Mapping[str, Any], *, own_directory: bool
) -> JobDescription:
    """Return the description with the requirements of a Snakemake job.

    `mem_mb` and `disk_mb` are in MB, `mem_mib` and `disk_mib` in MiB, `runtime` in minutes. Disk counts only if the job has its own directory.
    Resources such as `wms_sites` set the field of the description that follows `wms_`.

    Raise Rejected if a resource begins with `wms_` and names no such field.
    """
    runtime = _number(resources, "runtime")
    wall_time = base.wall_time if runtime is None else math.ceil(runtime * 60)
    memory = _mebibytes(resources, "mem")
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


def _mebibytes(resources: Mapping[str, Any], what: str) -> int | None:
    exact, decimal = _number(resources, f"{what}_mib"), _number(resources, f"{what}_mb")
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
    return {**lists, **{name: str(said[name]) for name in TEXTS if name in said}}


def _listed(value: object) -> tuple[str, ...]:
    return tuple(part.strip() for part in str(value).split(",") if part.strip())
