"""Writes descriptions as xRSL, for computing elements that accept it. The loss report names what xRSL cannot express."""

from collections.abc import Sequence
from datetime import UTC
from typing import Final

from wms.errors import Rejected
from wms.jobdesc.description import JobDescription
from wms.jobdesc.languages.translation import WrittenDocument
from wms.jobdesc.languages.xrsl_text import Said, written
from wms.jobdesc.loss_report import LossNotes, Origin


def write(descriptions: Sequence[JobDescription]) -> WrittenDocument:
    """Return an xRSL document with the jobs of the descriptions. For an array, only the fields that its jobs share are written.

    Raise Rejected if there is no description (NO_JOBS).
    """
    notes = LossNotes()
    requests = [_written(each, notes) for each in descriptions]
    if not requests:
        raise Rejected("NO_JOBS", "there is no job to write")
    text = (
        requests[0]
        if len(requests) == 1
        else "+" + "\n".join(f"({each.strip()})" for each in requests) + "\n"
    )
    return WrittenDocument(text=text, report=notes.report())


def _written(description: JobDescription, notes: LossNotes) -> str:
    said = dict(_attributes(description))
    for name in ("executable", *said):
        notes.kept(Origin(name))
    for field in _lost(description):
        notes.impossible(Origin(field), "xRSL has no such attribute")
    for each in description.inputs:
        if len(each.sources) > 1 or each.checksum or each.size is not None:
            notes.impossible(
                Origin(f"inputs {each.name}"), "xRSL names one source, without size and checksum"
            )
    for output in description.outputs:
        if len(output.targets) > 1 or output.optional:
            notes.impossible(Origin(f"outputs {output.name}"), "xRSL names one target, which is needed")
    if "/" not in description.executable:
        # ARC sends a file of that name; only an absolute path is of the node.
        said = {"arguments": (description.executable, *description.arguments), **said}
        said["arguments"] = (description.executable, *description.arguments)
        return written({"executable": "/usr/bin/env", **said})
    return written({"executable": description.executable, **said})


def _attributes(description: JobDescription) -> list[tuple[str, Said]]:
    one = description
    preferences = one.preferences
    inputs = tuple((each.name, each.sources[0]) for each in one.inputs)
    outputs = (
        *((name, "") for name in one.output_sandbox),
        *((each.name, target) for each in one.outputs for target in each.targets[:1]),
    )
    said: list[tuple[str, Said]] = [
        ("arguments", one.arguments),
        ("environment", tuple(one.environment.items())),
        ("inputfiles", inputs),
        ("executables", tuple(each.name for each in one.inputs if each.executable)),
        ("outputfiles", outputs),
        ("cputime", f"{one.cpu_time} seconds"),
        ("walltime", f"{one.wall_time} seconds" if one.wall_time else ""),
        ("memory", str(-(-one.memory_mb // max(1, one.processors))) if one.memory_mb else ""),
        ("disk", str(one.disk_mb or "")),
        ("stdin", one.stdin),
        ("stdout", one.stdout),
        ("stderr", one.stderr),
        ("jobname", one.name),
        ("count", str(one.processors) if one.processors > 1 else ""),
        ("rerun", str(one.max_attempts - 1)),
        ("exclusiveexecution", "yes" if one.whole_node else ""),
        ("queue", one.grid_ces[0] if len(one.grid_ces) == 1 else ""),
    ]
    if preferences is not None:
        said += [
            (
                "starttime",
                f"{preferences.earliest_start.astimezone(UTC):%Y%m%d%H%M%S}"
                if preferences.earliest_start
                else "",
            ),
            (
                "benchmarks",
                tuple(
                    (each.name, f"{each.result:g}", f"{each.seconds:g} seconds")
                    for each in preferences.benchmarks
                ),
            ),
        ]
    return [(name, value) for name, value in said if value]


_WRITTEN: Final = frozenset({
    "executable", "arguments", "environment", "inputs", "outputs", "output_sandbox", "cpu_time", "wall_time", "memory_mb", "disk_mb",
    "stdin", "stdout", "stderr", "name", "processors", "max_attempts", "whole_node", "preferences",
})  # fmt: skip


def _lost(description: JobDescription) -> list[str]:
    """Return the names of the fields that differ from their defaults and have no attribute in xRSL."""
    plain = JobDescription(executable=description.executable)
    fields = [
        name
        for name in JobDescription.__struct_fields__
        if name not in _WRITTEN and getattr(description, name) != getattr(plain, name)
    ]
    return [each for each in fields if each != "grid_ces" or len(description.grid_ces) != 1]
