"""The OpenAPI document: whole, valid, and of everything that is served."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from services.gateway.openapi import document, name_of
from services.gateway.operation import Operation
from services.gateway.routes import OPERATIONS
from wms.gateway.address import PREFIX

GOLDEN = Path(__file__).parents[3] / "docs" / "openapi.json"
SAID = json.loads(json.dumps(document(OPERATIONS)))


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_each_operation_is_described(operation: Operation) -> None:
    said = SAID["paths"][PREFIX + operation.path][operation.method.lower()]
    assert {each["name"] for each in said["parameters"] if each["in"] == "path"} == operation.in_path
    assert str(operation.status) in said["responses"]
    assert ("requestBody" in said) == (operation.body is not None)


def test_no_two_operations_have_one_name_or_place() -> None:
    names = [name_of(each) for each in OPERATIONS]
    places = [(each.method, each.path) for each in OPERATIONS]
    assert len(set(names)) == len(names)
    assert len(set(places)) == len(places)


def test_each_reference_leads_somewhere() -> None:
    text = json.dumps(SAID)
    for kind, name in set(re.findall(r'"#/components/(\w+)/(\w+)"', text)):
        assert name in SAID["components"][kind]


def test_each_schema_is_one() -> None:
    for schema in SAID["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_page_is_what_is_served_with_descriptions_of_fields() -> None:
    assert _plain(json.loads(GOLDEN.read_text("utf-8"))) == _plain(SAID)


def _plain(said: Any) -> Any:
    if isinstance(said, list):
        return [_plain(each) for each in said]
    if not isinstance(said, dict):
        return said
    # A field may be named so: its value is a schema then, and no text.
    return {
        key: _plain(value)
        for key, value in said.items()
        if not (key == "description" and isinstance(value, str))
    }


def test_only_these_are_served_without_a_token() -> None:
    public = {each.path for each in OPERATIONS if each.is_public}
    # A pilot that has no token yet proves that it has its secret.
    assert public == {"/health", "/openapi.json", "/pilots/{pilot_id}/credential"}
