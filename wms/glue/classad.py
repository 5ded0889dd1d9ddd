"""The ad of a computing element as ClassAd text, in gLite's form: `[id; update_time; expiry_time; info = [...]]`.

Texts, numbers, booleans, lists and records are read as values. Anything else is an expression, and is kept as its text.
(gLite itself published names without quotes, `name = gridftp05.cern.ch`, which is an unresolved reference in the language.
Where a text is needed, the text of such an expression is used.)
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from wms.classad import expression
from wms.classad.ad import Ad as ClassAd
from wms.classad.parsing import parse_ad
from wms.classad.tree import ListOf, Literal, Node, Record
from wms.classad.value import Special
from wms.classad.writing import write
from wms.glue.ad import EXPRESSIONS, Attributes, GlueAd, as_published, attributes, element_of

LIFETIME_SECONDS = 300
"""The lifetime in seconds of an ad that states none, as in gLite."""
_LATEST = 2**32


class ExpressionText(str):
    """The text of an expression. The type distinguishes it from a text value."""

    __slots__ = ()


class Text(NamedTuple):
    """The attributes that an ad's text contains, by name: plain values, and the texts of expressions."""

    values: Attributes
    expressions: dict[str, str]


def read_classad(text: str) -> GlueAd:
    """Return the computing element that an ad's text describes, with time and lifetime of the ad.

    Raise Rejected if the text is no ad or describes no computing element.
    """
    outer = read_attributes(text).values
    inner = outer.get("info")
    said = _with_id(inner, outer) if isinstance(inner, dict) else outer
    lifetime = outer.get("expiry_time", said.get("TTLCEinfo"))
    return GlueAd(
        element=element_of(said),
        updated_at=datetime.fromtimestamp(_seconds(outer.get("update_time"), _LATEST) or 0, UTC),
        lifetime_seconds=_seconds(lifetime, 86_400) or LIFETIME_SECONDS,
    )


def read_attributes(text: str) -> Text:
    """Return the attributes of an ad in the new syntax. Raise Rejected if the text is malformed, too large or too deep."""
    record = _record(parse_ad(text, "the ad"))
    values = {name: value for name, value in record.items() if not isinstance(value, ExpressionText)}
    return Text(
        values, {name: str(value) for name, value in record.items() if isinstance(value, ExpressionText)}
    )


def write_classad(ad: GlueAd) -> str:
    """Return the text of an ad, whose record `info` has all known values of the element and the expressions of `EXPRESSIONS`."""
    usual = {name: expression.Expression.parse(text, name) for name, text in EXPRESSIONS.items()}
    # These lists are looked at by the expressions, and are to be there even if they are empty.
    searched: Attributes = {"GlueCEAccessControlBaseRule": [], "GlueCESEBindGroupSEUniqueID": []}
    return str(
        ClassAd.of(
            {
                "id": ad.element.id,
                "update_time": int(ad.updated_at.timestamp()),
                "expiry_time": ad.lifetime_seconds,
                "info": searched
                | attributes(ad.element)
                | as_published(ad.element)
                | usual
                | {"TTLCEinfo": ad.lifetime_seconds},
            }
        )
    )


def _with_id(info: Mapping[str, Any], outer: Mapping[str, Any]) -> Attributes:
    return {"CEid": outer["id"], **info} if "id" in outer else dict(info)


def _seconds(value: object, most: int) -> int | None:
    return value if isinstance(value, int) and 0 < value <= most else None


def _record(trees: Iterable[tuple[str, Node]]) -> Attributes:
    found = {name: _value(tree) for name, tree in trees}
    return {name: value for name, value in found.items() if value is not None}


def _value(tree: Node) -> Any:
    """Return the value of a constant tree, the text of any other tree, or None for undefined."""
    match tree:
        case Literal(value=Special()):
            return None
        case Literal():
            return tree.value
        case ListOf():
            return [value for each in tree.items if (value := _value(each)) is not None]
        case Record():
            return _record(tree.attributes)
        case _:
            return ExpressionText(write(tree))
