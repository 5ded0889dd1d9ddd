"""`docs/openapi.json`: what the gateway serves, for programs; the document that it serves itself, with the docstrings of fields."""

from typing import Any, get_args

import msgspec

from docs.pages.schema import Json, described, text
from docs.pages.structs import Kind, field_docs
from services.gateway.openapi import document, kinds_of
from services.gateway.routes import OPERATIONS
from wms.gateway.address import PREFIX


def page() -> str:
    """Return the document as text."""
    said = document(OPERATIONS)
    structs = tuple(dict.fromkeys(struct for kind in kinds_of(OPERATIONS) for struct in _structs(kind)))
    schemas = said["components"]["schemas"]
    said["components"]["schemas"] = described(schemas, structs)
    for each in OPERATIONS:
        _describe(said["paths"][PREFIX + each.path][each.method.lower()], each.parameters)
    return text(said)


def _structs(kind: Any) -> list[Kind]:
    """Return the structs in a type, whatever it is made of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in get_args(kind) for struct in _structs(part)]


def _describe(operation: Json, parameters: Kind) -> None:
    docs = field_docs(parameters)
    for each in operation["parameters"]:
        if each["name"] in docs:
            each["description"] = docs[each["name"]]
