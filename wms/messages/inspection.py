"""Checks decoded messages for the rules that msgspec cannot express, and cleans their texts of one line.

A rule stands in the annotation of a type (`wms.bounds`). It is a function that returns what is wrong with a value. The rules of a
union are compiled once into plain functions. Types without rules cost nothing.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from msgspec import inspect
from msgspec.structs import force_setattr

from wms.bounds import ONE_LINE
from wms.errors import MESSAGE_LIMIT, Rejected
from wms.printed_text import one_line

Check: TypeAlias = Callable[[Any], None]
"""A function that takes a decoded value and raises Broken if it breaks a rule."""


class Broken(Exception):  # noqa: N818 - a rule is, and no fault of ours
    """A decoded value breaks a rule. `wrong` says how; `place` is the path of the value in the message, such as `.jobs[2]`."""

    def __init__(self, wrong: str) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.place = ""

    def at(self, place: str) -> "Broken":
        """Put `place`, the path of the enclosing value, before the error's path, and return the error itself."""
        self.place = place + self.place
        return self


def checks(union: Any, rule: str) -> dict[type, Check]:
    """Return, for each message type of `union` with such rules, a function that checks a message and raises Rejected.

    `rule` is the key of the rules in the annotations. Types without rules are left out. The error names the path of the wrong
    value.
    """
    found = {each.cls: _check(each, rule) for each in _structs(inspect.type_info(union))}
    return {kind: partial(_ask_all, check) for kind, check in found.items() if check}


def cleaners(union: Any) -> dict[type, Check]:
    """Return, for each message type of `union` with texts of one line, a function that cleans them in a decoded message.

    They are marked ONE_LINE in their annotations (`wms.bounds`). Types without such texts are left out.
    """
    found = {each.cls: _cleaner(each) for each in _structs(inspect.type_info(union))}
    return {kind: clean for kind, clean in found.items() if clean}


def _cleaner(kind: inspect.Type) -> Check | None:
    if isinstance(kind, inspect.StructType):
        return _clean_fields(kind)
    if isinstance(kind, inspect.Metadata):
        return _cleaner(kind.type)
    if isinstance(kind, inspect.CollectionType) and (inner := _cleaner(kind.item_type)):
        return partial(_ask_each, inner)
    return None


def _clean_fields(kind: inspect.StructType) -> Check | None:
    lines = [(each.name, _limit(each.type)) for each in kind.fields if _is_line(each.type)]
    parts = [(each.name, inner) for each in kind.fields if (inner := _cleaner(each.type))]
    if not lines and not parts:
        return None

    def clean(message: Any) -> None:
        for name, limit in lines:
            if not (text := getattr(message, name)).isprintable():
                # Nobody has seen the message yet: it is still being made.
                force_setattr(message, name, one_line(text, limit))
        for name, inner in parts:
            inner(getattr(message, name))

    return clean


def _is_line(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.Metadata) and ONE_LINE in (kind.extra or {})


def _limit(kind: Any) -> int:
    return kind.type.max_length or MESSAGE_LIMIT


def _structs(kind: inspect.Type) -> list[inspect.StructType]:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return [each for each in kinds if isinstance(each, inspect.StructType)]


def _ask_all(check: Check, message: Any) -> None:
    try:
        check(message)
    except Broken as broken:
        what = f"`${broken.place}` {broken.wrong}"
        raise Rejected("MESSAGE_INVALID", what, "correct it and send it again") from None


def _check(kind: inspect.Type, rule: str) -> Check | None:
    if isinstance(kind, inspect.Metadata):
        own, inner = (kind.extra or {}).get(rule), _check(kind.type, rule)
        return _both(inner, partial(_ask, own)) if own else inner
    return next((make(kind, rule) for known, make in _MAKERS.items() if isinstance(kind, known)), None)


def _ask(rule: Callable[[Any], str], value: Any) -> None:
    if wrong := rule(value):
        raise Broken(wrong)


def _both(first: Check | None, second: Check) -> Check:
    if first is None:
        return second

    def check(value: Any) -> None:
        first(value)
        second(value)

    return check


def _check_items(kind: Any, rule: str) -> Check | None:
    inner = _check(kind.item_type, rule)
    return partial(_ask_each, inner) if inner else None


def _ask_each(inner: Check, values: Any) -> None:
    for n, value in enumerate(values):
        try:
            inner(value)
        except Broken as broken:
            raise broken.at(f"[{n}]") from None


def _check_fields(kind: Any, rule: str) -> Check | None:
    fields = [(each.name, inner) for each in kind.fields if (inner := _check(each.type, rule))]
    if not fields:
        return None

    def check(value: Any) -> None:
        for name, inner in fields:
            # What is empty breaks no rule.
            if held := getattr(value, name):
                try:
                    inner(held)
                except Broken as broken:
                    raise broken.at(f".{name}") from None

    return check


def _check_fixed(kind: Any, rule: str) -> Check | None:
    found = [(n, inner) for n, each in enumerate(kind.item_types) if (inner := _check(each, rule))]
    if not found:
        return None

    def check(value: Any) -> None:
        for n, inner in found:
            try:
                inner(value[n])
            except Broken as broken:
                raise broken.at(f"[{n}]") from None

    return check


def _check_table(kind: Any, rule: str) -> Check | None:
    key, value = _check(kind.key_type, rule), _check(kind.value_type, rule)
    if key is None and value is None:
        return None

    def check(table: Any) -> None:
        try:
            if key:
                _ask_each(key, table)
            if value:
                _ask_each(value, table.values())
        except Broken as broken:
            raise Broken(broken.wrong).at("[...]") from None

    return check


def _check_union(kind: Any, rule: str) -> Check | None:
    found = [(_python_type(each), inner) for each in kind.types if (inner := _check(each, rule))]
    if not found:
        return None

    def check(value: Any) -> None:
        for types, inner in found:
            if isinstance(value, types):
                inner(value)

    return check


_MAKERS: dict[type[inspect.Type], Callable[[Any, str], Check | None]] = {
    inspect.StructType: _check_fields,
    inspect.NamedTupleType: _check_fields,
    inspect.UnionType: _check_union,
    inspect.DictType: _check_table,
    inspect.TupleType: _check_fixed,
    inspect.CollectionType: _check_items,
}
_PYTHON_TYPES: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.StrType: (str,),
    inspect.DateTimeType: (datetime,),
    inspect.DictType: (dict,),
    inspect.TupleType: (tuple,),
    inspect.CollectionType: (list, tuple, set, frozenset),
}


def _python_type(kind: inspect.Type) -> tuple[type, ...]:
    bare = kind.type if isinstance(kind, inspect.Metadata) else kind
    if isinstance(bare, inspect.StructType):
        return (bare.cls,)
    return next((types for each, types in _PYTHON_TYPES.items() if isinstance(bare, each)), (object,))
