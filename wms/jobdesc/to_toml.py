"""Writes descriptions as TOML: the fields of one job, or a table `[[jobs]]` for each of several."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from wms.jobdesc.description import JobDescription

_BARE = re.compile(r"[A-Za-z0-9_-]+")
WIDTH = 100
"""How many characters a list may have to be written on one line."""


def write_toml(descriptions: Sequence[JobDescription]) -> str:
    """Return a TOML document with these descriptions. `read_toml` reads it as equal descriptions."""
    tables = [msgspec.to_builtins(each, builtin_types=()) for each in descriptions]
    if len(tables) == 1:
        return "\n".join(_table(tables[0], "")) + "\n"
    return "\n".join(line for each in tables for line in ("[[jobs]]", *_table(each, "jobs."), ""))


def _table(fields: Mapping[str, Any], prefix: str) -> Iterator[str]:
    # Values first: what follows a header belongs to its table.
    for key, value in fields.items():
        if not _is_section(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in fields.items():
        if _is_section(value):
            yield from _section(f"{prefix}{_key(key)}", value)


def _is_section(value: Any) -> bool:
    return (isinstance(value, Mapping) and bool(value)) or _is_tables(value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _section(name: str, value: Any) -> Iterator[str]:
    head = f"\n[[{name}]]" if _is_tables(value) else f"\n[{name}]"
    for each in value if _is_tables(value) else [value]:
        yield head
        yield from (f"{_key(key)} = {_value(below)}" for key, below in each.items())


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        items = [_value(each) for each in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= WIDTH else "[\n" + "".join(f"  {each},\n" for each in items) + "]"
    if isinstance(value, str):
        return _text(value)
    return str(value).lower()


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f")
