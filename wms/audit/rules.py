"""The auditor's own version of the system's rules, written from the design and not from the services' code."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

MOVES = """
                    receive>Submitting receive>Received
    Submitting      receive>Received check>Checking kill>Killed remove>Deleted
    Received        scout>Scouting check>Checking stage>Staging enqueue>Waiting hold>Held fail>Failed kill>Killed remove>Deleted
    Checking        scout>Scouting stage>Staging enqueue>Waiting reschedule>Rescheduled hold>Held fail>Failed kill>Killed remove>Deleted
    Scouting        check>Checking stall>Stalled fail>Failed kill>Killed
    Staging         check>Checking enqueue>Waiting hold>Held fail>Failed kill>Killed
    Waiting         check>Checking match>Matched reschedule>Rescheduled hold>Held fail>Failed kill>Killed remove>Deleted
    Matched         start>Running reschedule>Rescheduled fail>Failed kill>Killed
    Rescheduled     enqueue>Waiting receive>Received hold>Held fail>Failed kill>Killed remove>Deleted
    Running         stall>Stalled complete>Completing finish>Done reschedule>Rescheduled receive>Received fail>Failed kill>Killed
    Stalled         resume>Running reschedule>Rescheduled fail>Failed kill>Killed
    Completing      stall>Stalled deliver>Completed finish>Done fail>Failed kill>Killed
    Completed       finish>Done fail>Failed
    Held            release>Waiting fail>Failed kill>Killed remove>Deleted
    Done            remove>Deleted
    Failed          reschedule>Rescheduled remove>Deleted
    Killed          remove>Deleted
"""
"""The allowed changes of state: each line has a state, then `event>state` for each change from it. The first line is for new jobs."""

SEGMENTS = (500, 5_000, 50_000, 300_000)
"""The default CPU segments: upper bounds of requested CPU time, in seconds, by which jobs are divided into queues."""

KEY_ORDER = (
    "owner", "owner_group", "vo", "setup", "cpu_segment", "submit_pools", "pilot_types", "sites", "banned_sites",
    "grid_ces", "grid_middlewares", "platforms", "job_types", "tags", "min_ram_mb", "requirements",
    "rank", "attributes", "max_ram_mb", "min_disk_mb", "certificate_subject", "fqans",
)  # fmt: skip
"""The fields of requirements from which a task queue's key is made, in this order, as JSON without spaces.

Empty fields after the first five are left out.
"""

EXPRESSIONS = ("requirements", "rank", "attributes")

NAMED = (
    "submit_pools", "pilot_types", "sites", "banned_sites", "grid_ces", "grid_middlewares", "platforms", "job_types", "tags",
)  # fmt: skip
"""The fields of requirements that hold sets of names, which are compared without regard to case."""
AS_WRITTEN = frozenset({"job_types", "tags"})
"""The fields with names whose case expressions can tell apart. So they stand in the key of a queue as they are written."""


def legal_moves() -> list[str]:
    """Return each allowed change of state as `before/event/after`. For a new job `before` is empty."""
    moves = []
    for line in MOVES.strip("\n").splitlines():
        words = line.split()
        before = "" if ">" in words[0] else words.pop(0)
        moves += [f"{before}/{event}/{after}" for event, after in (word.split(">") for word in words)]
    return moves


def without_case(requirements: Mapping[str, Any], but: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the requirements with their sets of names in lower case, except those in `but`, sorted and without duplicates."""
    return {
        name: sorted({each.casefold() for each in value}) if name in NAMED and name not in but else value
        for name, value in requirements.items()
    }


def queue_key(requirements: Mapping[str, Any]) -> bytes:
    """Return the key, a SHA-256 digest, that the task queue of these requirements must have."""
    requirements = without_case(requirements, AS_WRITTEN)
    kept = {name: requirements[name] for name in KEY_ORDER if requirements.get(name)}
    # Said whatever they are, even when empty.
    said = {name: requirements.get(name, "") for name in KEY_ORDER[:5]}
    ordered = {name: {**kept, **said}[name] for name in KEY_ORDER if name in kept or name in said}
    return hashlib.sha256(json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()).digest()


def asked(description: Mapping[str, Any], segments: tuple[int, ...]) -> dict[str, Any]:
    """Return the requirements that follow from a job description, without the owner's identity. `segments` are the CPU segments in seconds.

    Expressions are not compared: the result only says whether the description has any.
    """
    requirements: dict[str, Any] = {
        "setup": description.get("setup", "default"),
        "cpu_segment": _segment(description.get("cpu_time", 86_400), segments),
        "min_ram_mb": description.get("memory_mb") or 0,
        "max_ram_mb": description.get("max_memory_mb") or 0,
        "min_disk_mb": description.get("disk_mb") or 0,
        "banned_sites": sorted(set(description.get("banned_sites", ())) - {""}),
        "job_types": _names([description.get("job_type", "User")]),
        "tags": _tags(description),
        **{name: bool(description.get(name)) for name in EXPRESSIONS},
    }
    requirements["requirements"] |= bool(description.get("stations") or description.get("gpus"))
    for field in ("grid_ces", "grid_middlewares", "platforms", "pilot_types", "submit_pools"):
        requirements[field] = _names(description.get(field, ()))
    banned = {site.casefold() for site in requirements["banned_sites"]}
    sites = [site for site in description.get("sites", ()) if site.casefold() not in banned]
    requirements["sites"] = _names(sites)
    return without_case({name: value for name, value in requirements.items() if value})


def _segment(cpu_time: int, segments: tuple[int, ...]) -> int:
    for bound in segments:
        if cpu_time <= bound:
            return bound
    return math.ceil(cpu_time / 3_600) * 3_600


def _names(values: Any) -> list[str]:
    """Return the distinct non-empty names, sorted. The list is empty if "any", in any case, is among them."""
    if any(value.lower() == "any" for value in values):
        return []
    return sorted(set(values) - {""})


def _tags(description: Mapping[str, Any]) -> list[str]:
    least = description.get("min_processors")
    processors = description.get("processors", 1) if least is None else least
    tags = set(description.get("tags", ())) - {""}
    if processors > 1:
        tags |= {f"{processors}Processors", "MultiProcessor"}
    if least is not None and description.get("max_processors") != 1:
        tags.add("MultiProcessor")
    if description.get("whole_node"):
        tags |= {"WholeNode", "MultiProcessor"}
    if description.get("container"):
        tags.add("Container")
    elif description.get("network") == "none":
        tags.add("PrivateNetwork")
    return sorted(tags)


def misfit(requirements: Mapping[str, Any], site: str, ce: str, vo: str | None) -> str:
    """Return why a job with these requirements must not run at this site and computing element, for a pilot of this VO; empty if it may.

    If `vo` is None, VOs are not compared.
    """
    if vo is not None and requirements["vo"] != vo:
        return f"the job is of VO {requirements['vo']}, the pilot of {vo}"
    asked = without_case(requirements)
    sites = asked.get("sites", [])
    if sites and site.casefold() not in sites:
        return f"the job asks for {sites}, not for {site}"
    if site.casefold() in asked.get("banned_sites", []):
        return f"the job bans {site}"
    ces = asked.get("grid_ces", [])
    if ces and ce.casefold() not in ces:
        return f"the job asks for {ces}, not for {ce}"
    return ""
