"""Descriptions as programs make them: numbers where texts belong, sizes and times with units."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

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
