"""Our extension of JSDL: an Extension element with the fields of a description that JSDL cannot express, each as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from lxml import etree

from wms.jobdesc.from_json import table_of
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.hardened_xml import (
    XmlNode,
    children,
    local,
    namespace,
    origin_of,
    text_of_node,
)
from wms.jobdesc.languages.jsdl.namespaces import WMS
from wms.jobdesc.problem import InvalidDescription


def fields_of(node: XmlNode) -> Mapping[str, XmlNode]:
    """Return the Field elements within an Extension element, by the names of the description's fields."""
    named = (each for each in children(node) if local(each) == "Field" and namespace(each) == WMS)
    return {each.get("name", ""): each for each in named}


def read_extension(draft: JobDraft, node: XmlNode) -> None:
    """Put the fields of an Extension element into a draft, in place of values from other elements. Invalid JSON is a problem of the draft."""
    known = fields_of(node)
    for each in children(node):
        if each not in known.values():
            draft.impossible(origin_of(each), "no field of ours, or given twice")
    for name, each in known.items():
        try:
            value = table_of(b'{"value": ' + text_of_node(each).encode() + b"}")["value"]
        except (InvalidDescription, UnicodeEncodeError, KeyError):
            draft.problem(origin_of(each), f"the field {name} is no JSON")
            continue
        draft.overrule(name, value, origin_of(each))


def write_extension(fields: Mapping[str, Any]) -> XmlNode:
    """Return a new Extension element with these fields of a description, by name. The values are plain data."""
    node = etree.Element(f"{{{WMS}}}Extension", nsmap={"wms": WMS})
    for name, value in fields.items():
        etree.SubElement(node, f"{{{WMS}}}Field", name=name).text = json.dumps(value)
    return node
