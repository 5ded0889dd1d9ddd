"""Parametric jobs of JDL: `Parameters` as a list, or as a series by `ParameterStart`, `ParameterStep` and `ParameterFactor`.

DIRAC writes `%s` for the parameter, `%(name)s` for one of several and `%n` for the number of the job; gLite writes
`_PARAM_`. In DIRAC `Parameters = 5` makes five jobs. In gLite it is an upper bound, which values stay below.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from wms.classad.tree import Literal, Node, with_children
from wms.jobdesc.array import INDEX, PLACEHOLDER
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.jdl_text import JdlAttribute
from wms.jobdesc.loss_report import Origin
from wms.jobdesc.series import expanded

ONLY: Final = "parameter"
"""The name of the parameter if the document has just one, without a name."""
GLITES: Final = "_PARAM_"

_BRACED = re.compile(r"\{(?:%\([A-Za-z_][A-Za-z0-9_]*\)s|%s|%n|_PARAM_)\}")
_PLACEHOLDER = re.compile(r"%\(([A-Za-z_][A-Za-z0-9_]*)\)s|%s|%n|_PARAM_")
_NAME = re.compile(
    r"(parameters|parameterstart|parameterstep|parameterfactor)(?:\.([A-Za-z_][A-Za-z0-9_]*))?"
)
_PARTS: Final = {"parameterstart": "start", "parameterstep": "step", "parameterfactor": "factor"}


def is_of_parameters(attribute: JdlAttribute) -> bool:
    """Return whether an attribute defines values of parameters, as `Parameters` and `ParameterStart` do."""
    return _NAME.fullmatch(attribute.key) is not None


def lists_of(draft: JobDraft, attributes: Sequence[JdlAttribute], others: Sequence[JdlAttribute]) -> None:
    """Make a draft an array, from the attributes that define values of parameters.

    `others` are all other attributes. If one of them contains `_PARAM_`, the document is read as gLite's. A parameter without a list
    or a number of jobs becomes a problem of the draft.
    """
    said = dict[str, dict[str, Any]]()
    for attribute in attributes:
        name = attribute.name.partition(".")[2] or ONLY
        said.setdefault(name, {}).update(_part(attribute))
    is_glite = any(GLITES in each.text for each in others)
    for name, parts in said.items():
        origin = Origin("Parameters", attributes[0].line)
        values, fault = _values(parts, is_glite=is_glite)
        if fault:
            draft.problem(origin, fault)
        else:
            draft.put_item("parameters", name, values, origin)


def _part(attribute: JdlAttribute) -> dict[str, Any]:
    found = _NAME.fullmatch(attribute.key)
    kind = found[1] if found else ""
    if kind != "parameters":
        return {_PARTS[kind]: attribute.value}
    value = attribute.value
    return (
        {"count": value}
        if isinstance(value, int)
        else {"list": attribute.names if attribute.texts is None else attribute.texts}
    )


def _values(parts: Mapping[str, Any], *, is_glite: bool) -> tuple[Sequence[str], str]:
    """Return the values of a parameter and an empty text. If it has none, return an empty sequence and a text that says why."""
    if parts.get("list") is not None:
        return parts["list"], ""
    series = {name: value for name, value in parts.items() if name != "list"}
    if "count" not in series:
        return (), "does not say how many jobs"
    entry, findings = expanded({"parameters": {ONLY: _bounded(series) if is_glite else series}}, Expansion())
    if findings:
        return (), findings[0][1]
    found = entry["parameters"]
    assert isinstance(found, Mapping)
    return found[ONLY], ""


def _bounded(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return gLite's series with `count` as the number of values. In gLite's form, `count` is a bound that all values stay below."""
    start, step, bound = said.get("start", 0), said.get("step", 1), said["count"]
    if not all(isinstance(each, int) for each in (start, step, bound)) or step == 0:
        return dict(said)
    return {"start": start, "step": step, "count": max(0, -((start - bound) // step))}


def with_our_placeholders(attribute: JdlAttribute, names: Collection[str]) -> JdlAttribute:
    """Return the attribute with JDL's placeholders replaced by ours: `%n` by `{n}`, `%s` and `_PARAM_` by the parameter's name in braces.

    Braces of the author around one of the parameters' `names`, or `n`, are doubled, so that they stay as they are.
    """
    own = {*names, INDEX}

    def ours(text: str) -> str:
        doubled = PLACEHOLDER.sub(
            lambda found: f"{{{found[0]}}}" if (found[1] or found[2]) in own else found[0], text
        )
        return _PLACEHOLDER.sub(lambda found: f"{{{_name(found)}}}", doubled)

    return _with_texts(attribute, ours)


def with_values(attribute: JdlAttribute, values: Mapping[str, str]) -> JdlAttribute:
    """Return the attribute of one job, with JDL's placeholders replaced by `values`, by the names of parameters and `n`."""
    return _with_texts(
        attribute, lambda text: _PLACEHOLDER.sub(lambda found: values.get(_name(found), found[0]), text)
    )


def is_template(attribute: JdlAttribute) -> bool:
    """Return whether an attribute has placeholders."""
    return _PLACEHOLDER.search(attribute.text) is not None


def is_ambiguous(attribute: JdlAttribute) -> bool:
    """Return whether braces of the author stand directly around a placeholder, which no text of ours can say."""
    return _BRACED.search(attribute.text) is not None


def _with_texts(attribute: JdlAttribute, change: Callable[[str], str]) -> JdlAttribute:
    def replaced(node: Node) -> Node:
        if isinstance(node, Literal):
            return Literal(change(node.value)) if isinstance(node.value, str) else node
        return with_children(node, replaced)

    return msgspec.structs.replace(attribute, node=replaced(attribute.node))


def _name(found: "re.Match[str]") -> str:
    return INDEX if found[0] == "%n" else found[1] or ONLY
