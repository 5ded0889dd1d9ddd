"""Files that only we may read, written whole or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

Value = str | int | float | bool | list[str]


def write_secret(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a file with mode 0600, never visible half written or to others; `durable` waits for the disk."""
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


def to_toml(table: Mapping[str, Value | Mapping[str, Value]]) -> str:
    """Return a table of values and of one level of tables as TOML."""
    plain = [f"{key} = {_literal(value)}\n" for key, value in table.items() if not isinstance(value, Mapping)]
    for key, inner in table.items():
        if isinstance(inner, Mapping):
            plain += [f"\n[{key}]\n", *(f"{name} = {_literal(value)}\n" for name, value in inner.items())]
    return "".join(plain)


def _literal(value: Value) -> str:
    # What JSON writes for these is what TOML reads, but for the one character it leaves bare and TOML forbids.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
