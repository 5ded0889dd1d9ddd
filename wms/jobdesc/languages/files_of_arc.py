"""What ARC's clients do with a job before they submit it, in xRSL as in ADL: relative paths are sent along, and needs are of each slot.

Source: `JobDescription::Prepare` of ARC 6.
"""

import posixpath
from collections.abc import Collection

from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.loss_report import Origin

JOINED = 'exec "$@" 2>&1'
"""The commands of a shell that runs its arguments with the errors sent to the standard output."""


def local_path(source: str) -> str:
    """Return a source, without `file://` if it is a file of the submitter."""
    return (
        source.removeprefix("file://localhost").removeprefix("file://")
        if source.startswith("file:")
        else source
    )


def send(draft: JobDraft, field: str, named: Collection[str]) -> None:
    """Send the file along that a field names by a relative path, unless it is among the input files, which are `named`."""
    said = draft.get(field)
    if not isinstance(said, str) or not said or said.startswith("/"):
        return
    name = posixpath.normpath(said)
    if name not in named and said not in named:
        draft.add_input(name, name, Origin(field), executable=field == "executable")
    if field == "executable" and "/" not in name:
        name = f"./{name}"
    draft.update(field, name)


def times_slots(draft: JobDraft, field: str) -> None:
    """Multiply what each slot needs by the number of slots."""
    slots, value = draft.get("processors"), draft.get(field)
    if isinstance(slots, int) and isinstance(value, int) and slots > 0:
        draft.update(field, value * slots)


def join(draft: JobDraft) -> None:
    """Run the program in a shell that sends its errors to the standard output."""
    if program := draft.get("executable"):
        origin = Origin("join")
        draft.put("arguments", ["-c", JOINED, "sh", program, *draft.get("arguments", ())], origin)
        draft.put("executable", "/bin/sh", origin)


def platform(name: str) -> str:
    """Return the name of a platform as nodes tell it: `amd64` is `x86_64`."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name)
