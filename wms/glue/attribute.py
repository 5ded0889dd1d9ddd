"""Attributes: the GLUE name and the kind of value of each field of a record, and conversion of records from and to texts.

XML, LDIF and JSON contain texts; values of a ClassAd are converted to texts first. So one table for each record serves all formats. A
value that does not fit its kind counts as unknown, since one wrong number must not remove a site.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from wms.errors import Rejected
from wms.glue import quantity
from wms.glue.quantity import UNKNOWN, Quantity

Texts: TypeAlias = Mapping[str, Sequence[str]]
"""The values of each attribute by its GLUE name."""

UNDEFINED = "undefined"
NOWHERE = "https://unknown.invalid"
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_REAL = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?")


class ValueKind(Enum):
    """The kind of an attribute's value."""

    TEXT = "text"
    TEXTS = "texts"
    COUNT = "count"
    SIZE = "size"
    WAIT = "wait"
    LIMIT = "limit"
    SECONDS = "seconds"
    MINUTES = "minutes"
    FLAG = "flag"
    REAL = "real"


class Attribute(NamedTuple):
    """A field of a record, with its GLUE name and the kind of its value.

    `placeholder` is published for an unknown value of a mandatory attribute. `among` has the texts of a closed enumeration.
    """

    field: str
    name: str
    kind: ValueKind = ValueKind.TEXT
    placeholder: str | None = None
    among: frozenset[str] = frozenset()


_NUMBERS: dict[ValueKind, Callable[[int], Quantity]] = {
    ValueKind.COUNT: quantity.count,
    ValueKind.SIZE: quantity.size,
    ValueKind.WAIT: quantity.wait,
    ValueKind.LIMIT: quantity.limit,
    ValueKind.SECONDS: quantity.seconds,
    ValueKind.MINUTES: quantity.minutes,
}


def fields(table: Sequence[Attribute], texts: Texts) -> dict[str, Any]:
    """Return the values of a record's fields, by field name, read from texts. Names of attributes match in any case."""
    folded = {name.casefold(): values for name, values in texts.items()}
    return {each.field: _read(each, folded.get(each.name.casefold(), ())) for each in table}


def placeholders(table: Sequence[Attribute], texts: Texts) -> tuple[tuple[str, int], ...]:
    """Return those published numbers that stand for «unknown» or «unlimited», each with the name of its attribute.

    Numbers that this code itself publishes for «unlimited» are left out.
    """
    folded = {name.casefold(): values for name, values in texts.items()}
    found = []
    for each in table:
        text = next(iter(folded.get(each.name.casefold(), ())), "").strip()
        if each.kind in _NUMBERS and _INTEGER.fullmatch(text):
            read = number(each.kind, text)
            if isinstance(read, quantity.NotANumber) and quantity.told(read) != int(text):
                found.append((each.name, int(text)))
    return tuple(found)


def texts(table: Sequence[Attribute], record: object) -> list[tuple[str, str]]:
    """Return the attributes of a record as pairs of name and text, in the order of the table.

    An attribute with several values has a pair for each.
    """
    return [
        (each.name, text) for each in table for text in _written(each.kind, getattr(record, each.field), each)
    ]


def required(texts: Texts, name: str, what: str) -> str:
    """Return the value of a mandatory attribute. Raise Rejected, naming the record `what`, if it is missing or blank."""
    for each, values in texts.items():
        if each.casefold() == name.casefold() and values and values[0].strip():
            return values[0].strip()
    raise Rejected("GLUE_INVALID", f"{what} has no {name}")


def is_placeholder(text: str) -> bool:
    """Return whether a text is empty or a placeholder for an unknown value (GFD.147, appendix A)."""
    return (
        not text
        or text == UNDEFINED
        or text.startswith(("UNDEFINEDVALUE", "/UNDEFINEDPATH", "\\UNDEFINEDPATH"))
    )


def number(kind: ValueKind, text: str) -> Quantity:
    """Return the quantity that a text means for this kind of value; `UNKNOWN` if the text is no whole number."""
    return _NUMBERS[kind](int(text)) if _INTEGER.fullmatch(text) else UNKNOWN


def flag(text: str) -> bool | None:
    """Return the value of an extended boolean, `true` or `false`; None for «undefined» or another text."""
    return {"true": True, "false": False}.get(text.casefold())


def real(text: str) -> float | None:
    """Return the value of a decimal number; None if the text is no decimal number."""
    return float(text) if _REAL.fullmatch(text) else None


def _read(attribute: Attribute, values: Sequence[str]) -> Any:
    stripped = [value.strip() for value in values]
    said = [value for value in stripped if not is_placeholder(value)]
    match attribute.kind:
        case ValueKind.TEXTS:
            return tuple(said)
        case ValueKind.TEXT:
            return _text(attribute.among, said[0]) if said else ""
        case ValueKind.FLAG:
            return flag(said[0]) if said else None
        case ValueKind.REAL:
            return real(said[0]) if said else None
        case kind:
            return number(kind, said[0]) if said else UNKNOWN


def _text(among: frozenset[str], said: str) -> str:
    if not among:
        return said
    return said.casefold() if said.casefold() in among else ""


def value(kind: ValueKind, held: Any) -> Any:
    """Return a field's value as it is published: a number, text, boolean or list of texts; None if it is unknown and not published."""
    match kind:
        case ValueKind.TEXT:
            return held or None
        case ValueKind.TEXTS:
            return list(held) or None
        case ValueKind.FLAG | ValueKind.REAL:
            return held
        case ValueKind.MINUTES:
            return quantity.told(quantity.in_minutes(held))
        case _:
            return quantity.told(held)


def _written(kind: ValueKind, held: Any, attribute: Attribute) -> list[str]:
    published = value(kind, held)
    if published is None:
        return [] if attribute.placeholder is None else [attribute.placeholder]
    if isinstance(published, bool):
        return ["true" if published else "false"]
    return published if isinstance(published, list) else [str(published)]
