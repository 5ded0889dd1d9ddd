"""What structs say of themselves: types in words, defaults, and the docstrings of fields, which only the source keeps."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

LINKS = {"State": "states.md", "Event": "states.md#events", "Code": "states.md#reasons"}
"""Enums that have a page of their own."""

Kind = type[msgspec.Struct]


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, inherited ones included, each as one line."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.partition(".")[0] in ("wms", "services"):
            found.update(_own_field_docs(each))
    return found


@cache
def _classes(path: str) -> dict[str, ast.ClassDef]:
    module = ast.parse(Path(path).read_text("utf-8"))
    return {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}


def _own_field_docs(kind: type) -> dict[str, str]:
    body = _classes(inspect.getsourcefile(kind) or "")[kind.__name__].body
    found = {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and (text := _text(after)):
            found[field.target.id] = text
    return found


def _text(node: ast.stmt) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""


def prose(thing: object) -> str:
    """Return a docstring as Markdown paragraphs."""
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def struct_of(kind: Kind) -> types.StructType:
    """Return what msgspec knows of a struct."""
    found = types.type_info(kind)
    assert isinstance(found, types.StructType)
    return found


def below(kind: Kind) -> list[Kind]:
    """Return the structs that a struct holds, at any depth, in the order in which they are met."""
    found: dict[Kind, None] = {}
    _collect(struct_of(kind), found)
    del found[kind]
    return list(found)


def _collect(given: types.Type, found: dict[Kind, None]) -> None:
    if isinstance(given, types.StructType):
        if given.cls in found:
            return
        found[given.cls] = None
    for part in _inside(given):
        _collect(part, found)


def _inside(given: types.Type) -> Iterator[types.Type]:
    """Go through the types that make up a type."""
    match given:
        case types.StructType():
            yield from (field.type for field in given.fields)
        case types.UnionType():
            yield from given.types
        case types.TupleType():
            yield from given.item_types
        case types.DictType():
            yield given.value_type
        case types.CollectionType():
            yield given.item_type
        case types.Metadata():
            yield given.type


def say(given: types.Type) -> str:
    """Return a type in words, as Markdown."""
    return _simple(given) or _compound(given)


def _simple(given: types.Type) -> str:
    match given:
        case types.StrType():
            like = f" like `{given.pattern}`" if given.pattern else ""
            return f"text{_length(given, 'characters')}{like}"
        case types.IntType():
            return f"whole number{_range(given)}"
        case types.FloatType():
            return f"number{_range(given)}"
        case types.EnumType():
            return _enum(given.cls)
        case types.LiteralType():
            return _choice(given.values)
    return _PLAIN.get(type(given), "")


def _items(given: types.TupleType | types.NamedTupleType) -> list[str]:
    if isinstance(given, types.TupleType):
        return [say(each) for each in given.item_types]
    return [field.encode_name for field in given.fields]


def _compound(given: types.Type) -> str:
    match given:
        case types.Metadata():
            return say(given.type)
        case types.StructType():
            return f"[{given.cls.__name__}](#{given.cls.__name__.lower()})"
        case types.UnionType():
            return " or ".join(sorted(map(say, given.types), key=lambda word: word == "null"))
        case types.TupleType() | types.NamedTupleType():
            return f"[{', '.join(_items(given))}]"
        case types.DictType():
            return f"table of {say(given.value_type)}"
        case types.CollectionType():
            return f"list of {say(given.item_type)}{_length(given, 'entries')}"
    raise AssertionError(f"no words for {given}")


_PLAIN: dict[type[types.Type], str] = {
    types.AnyType: "any JSON",
    types.RawType: "any JSON",
    types.BoolType: "true or false",
    types.NoneType: "null",
    types.DateTimeType: "time (RFC 3339)",
}


def _enum(kind: type[Enum]) -> str:
    name = kind.__name__
    return f"[{name}]({LINKS[name]})" if name in LINKS else _choice(each.value for each in kind)


def _choice(values: Iterable[object]) -> str:
    return "one of " + ", ".join(f"`{value}`" if value != "" else '`""`' for value in values)


GENEROUS, GENEROUS_LENGTH = 10**10, 4_096
"""Bounds that nobody comes near are in the schemas, not in the pages."""


def _length(given: Any, of: str) -> str:
    low, high = given.min_length, given.max_length
    if high is None or high >= GENEROUS_LENGTH:
        return f", at least {low:,} {of}" if low else ""
    return f", {low:,} to {high:,} {of}" if low else f", at most {high:,} {of}"


def _range(given: types.IntType | types.FloatType) -> str:
    bounds = (("≥", given.ge), (">", given.gt), ("≤", given.le), ("<", given.lt))
    return "".join(
        f", {sign} {bound:,}" for sign, bound in bounds if bound is not None and abs(bound) < GENEROUS
    )


def default(field: types.Field) -> str:
    """Return a field's default as JSON, or an empty text where it must be given."""
    if field.default is not msgspec.NODEFAULT:
        return _json(field.default)
    if field.default_factory is not msgspec.NODEFAULT:
        return _json(field.default_factory())
    return ""


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def cell(text: str) -> str:
    """Return a text fit for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(map(cell, cells)) + " |"


def head(*names: str) -> list[str]:
    """Return the first two lines of a Markdown table."""
    return [row(*names), "|" + "---|" * len(names)]
