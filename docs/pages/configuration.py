"""`docs/configuration.md`: every key that a service may be told."""

import inspect
from collections.abc import Iterator
from importlib import import_module

import msgspec
from msgspec import inspect as types

from docs.pages.structs import Kind, default, field_docs, head, prose, row, say, struct_of
from wms.embedded.layout import SERVICES
from wms.runtime.pilot_config import PilotConfig

LEAD = """# Configuration

A service reads one TOML file, `python -m services.NAME --config FILE`, and variables of its environment. Samples with
comments are in [`deploy/`](../deploy). `wms up` writes these files itself, into `services/NAME/config.toml` of its data
directory.

* A key that is not known and a value of the wrong type are errors that name their place; the service ends with exit code
  2 before it connects to anything.
* `WMS_TABLE__KEY` in the environment goes before the file: `WMS_POSTGRES__URL` is `url` in `[postgres]`. Numbers and
  truth values are read from the text; lists and tables in lists cannot be given so.
* **required** marks keys without a default. A table is needed where one of its keys is.
"""


class _Table(msgspec.Struct, frozen=True):
    heading: str
    kind: Kind


def configs() -> dict[str, Kind]:
    """Return each service's configuration."""
    found: dict[str, Kind] = {name: import_module(f"services.{name}.config").Config for name in SERVICES}
    return {**found, "job_agent": PilotConfig}


def page() -> str:
    """Return the page."""
    lines = [LEAD, "## Every service", ""]
    every = {table.heading: table for table in _tables(_common())}
    for table in every.values():
        lines += _section(table)
    for name, kind in configs().items():
        lines += [f"## {name}", "", *_about(name, kind)]
        for table in _tables(kind):
            if every.get(table.heading) != table or name == "job_agent":
                lines += _section(table)
    return "\n".join(lines).rstrip() + "\n"


def _common() -> Kind:
    return import_module("wms.runtime.config").ServiceConfig  # type: ignore[no-any-return]


def _about(name: str, kind: Kind) -> list[str]:
    path = inspect.getmodule(kind).__name__.replace(".", "/") + ".py"  # type: ignore[union-attr]
    said = [f"[`{path}`](../{path}). Sample: [`deploy/{name}.toml`](../deploy/{name}.toml).", ""]
    if name == "job_agent":
        return [*said, "Written by the pilot submitter for each pilot, and nobody else need write one.", ""]
    return said


def _tables(kind: Kind) -> Iterator[_Table]:
    for field in struct_of(kind).fields:
        found = _table(field.encode_name, field.type)
        assert found is not None, f"{kind.__name__}.{field.name} is no table"
        yield found


def _table(name: str, given: types.Type) -> _Table | None:
    match given:
        case types.Metadata(type=inner) | types.UnionType(types=(inner, types.NoneType())):
            return _table(name, inner)
        case types.StructType():
            return _Table(f"[{name}]", given.cls)
        case (
            types.ListType(item_type=types.StructType() as item)
            | types.VarTupleType(item_type=types.StructType() as item)
        ):
            return _Table(f"[[{name}]]", item.cls)
        case types.DictType(value_type=types.StructType() as item):
            return _Table(f"[{name}.NAME]", item.cls)
        case types.DictType(value_type=types.DictType() as inner):
            return _table(f"{name}.NAME", inner)
    return None


def _section(table: _Table, about: str = "") -> list[str]:
    """Return the section of a table, and those of the tables below it."""
    docs = field_docs(table.kind)
    lines = [
        f"### `{table.heading}`",
        "",
        about or prose(table.kind),
        "",
        *head("Key", "Type", "Default", ""),
    ]
    inner: list[str] = []
    for field in struct_of(table.kind).fields:
        said = docs.get(field.name, "")
        deeper = _table(f"{table.heading.strip('[]')}.{field.encode_name}", field.type)
        if deeper is not None:
            inner += _section(deeper, said)
            continue
        value = "**required**" if field.required else f"`{default(field)}`"
        lines.append(row(f"`{field.encode_name}`", say(field.type), value, said))
    return [*lines, "", *inner]
