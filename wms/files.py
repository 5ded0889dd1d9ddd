"""Writes files that only their owner can read, completely or not at all; and formats TOML."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Value: TypeAlias = str | int | float | bool | Sequence[str] | Mapping[str, Any]
Table: TypeAlias = Mapping[str, Value]
_BARE = re.compile(r"[A-Za-z0-9_.-]+")


def write_secret(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a file with mode 0600, and replace it in one step, so that no reader sees a part of it. `durable`: return once it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    fresh.replace(path)


def to_toml(document: Mapping[str, Value | Table | Sequence[Table]]) -> str:
    """Return a document of values, tables of values, and lists of such tables as TOML."""
    text = [
        f"{_key(key)} = {_literal(value)}\n" for key, value in document.items() if not _holds_tables(value)
    ]
    for key, value in document.items():
        if isinstance(value, Mapping):
            text += [f"\n[{_key(key)}]\n", *_lines(value)]
        elif isinstance(value, Sequence) and _holds_tables(value):
            for table in value:
                assert isinstance(table, Mapping)
                text += [f"\n[[{_key(key)}]]\n", *_lines(table)]
    return "".join(text)


def _lines(table: Table) -> list[str]:
    return [f"{_key(key)} = {_literal(value)}\n" for key, value in table.items()]


def _key(key: str) -> str:
    """Return a key as TOML has it, in quotes where it needs them, such as the VO `*`. A key with dots names a table in a table."""
    return key if _BARE.fullmatch(key) else _literal(key)


def _holds_tables(value: object) -> bool:
    several = value if isinstance(value, list) else [value]
    return any(isinstance(each, Mapping) for each in several)


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_literal(key)} = {_literal(each)}' for key, each in value.items())} }}"
    # What JSON writes for these is what TOML reads, but for the one character it leaves bare and TOML forbids.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
