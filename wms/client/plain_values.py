"""Descriptions as programs make them: numbers where texts belong, sizes and times with units, and programs that are files here."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from wms.errors import Rejected, shown
from wms.jobdesc.description import JobDescription
from wms.quantities import mebibytes, seconds, size_in_bytes

_UNITS: Final[Mapping[str, Callable[[str], int]]] = {
    **dict.fromkeys(("cpu_time", "wall_time", "grace_time"), seconds),
    **dict.fromkeys(("memory_mb", "max_memory_mb", "disk_mb"), mebibytes),
    **dict.fromkeys(("stdout_limit", "stderr_limit"), size_in_bytes),
}
"""How a text becomes the value of each field that has a unit, as on the command line."""


def plain(description: JobDescription) -> JobDescription:
    """Return the description with texts for numbers and paths in lists of texts, and with numbers for `"2G"` and `"1h30m"`.

    Each list of `parameters` may be any iterable. What cannot be read stays as it is, and validation names it.
    """
    found: dict[str, Any] = {
        name: _parsed(parse, said)
        for name, parse in _UNITS.items()
        if isinstance(said := getattr(description, name), str)
    }
    found["executable"] = _text(description.executable)
    found["arguments"] = _texts(description.arguments)
    for name in ("parameters", "environment"):
        table, one = getattr(description, name), _texts if name == "parameters" else _text
        if isinstance(table, Mapping):
            values = {key: one(value) for key, value in table.items()}
            found[name] = table if all(values[key] is value for key, value in table.items()) else values
    changed = {name: value for name, value in found.items() if value is not getattr(description, name)}
    return msgspec.structs.replace(description, **changed) if changed else description


def _parsed(parse: Callable[[str], int], said: str) -> int | str:
    try:
        return parse(said)
    except ValueError:
        return said


def _texts(values: object) -> object:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        return values
    if isinstance(values, list | tuple) and all(type(each) is str for each in values):
        return values
    return tuple(map(_text, values))


def _text(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number or isinstance(value, Path) else value


def program_to_send(description: JobDescription) -> Path | None:
    """Return the file of this machine that goes with the job as its program: an executable such as `./fit`. None if none does.

    If the description says where its files come from, the program is among them. Raise Rejected if there is no such file, or if
    it may not be executed.
    """
    name = description.executable
    brings = (
        description.input_sandbox
        or description.inputs
        or description.input_from
        or description.input_parameters
    )
    if not isinstance(name, str) or name.startswith("/") or "/" not in name or brings:
        return None
    path = Path(os.path.normpath(name))
    if path.parts[0] == ".." or not path.is_file():
        raise Rejected(
            "NO_SUCH_FILE",
            f"there is no program {shown(name, 200)} here to send along",
            "name one below this directory, an absolute path at the site, or files that bring it: input_sandbox",
        )
    if not os.access(path, os.X_OK):
        raise Rejected(
            "NOT_EXECUTABLE", f"{shown(name, 200)} may not be executed", f"chmod +x {shown(name, 200)}"
        )
    return path
