"""Each field of a description has one option in all commands, and what is wrong with it is told by that option."""

import inspect
from dataclasses import fields

import msgspec
import pytest

from wms.cli.changes import Changes
from wms.cli.fields import ELSEWHERE, IN_EDITS, OPTIONS, field_of, fields_of, flag_of
from wms.cli.submit import submit
from wms.jobdesc.changes import CHANGEABLE
from wms.jobdesc.description import JobDescription

NO_FIELDS = {
    "words",
    "table",
    "series",
    "retry_of",
    "input",
    "id",
    "dry_run",
    "strict",
    "hold",
    "wait",
    "common",
}
"""Parameters of `wms submit` that say how to submit, or from which fields are made with others."""


def test_the_options_of_submit_are_those_of_the_table() -> None:
    assert set(inspect.signature(submit).parameters) == {*OPTIONS.values(), *NO_FIELDS}
    assert {*OPTIONS, *ELSEWHERE} <= {each.name for each in msgspec.structs.fields(JobDescription)}


def test_the_options_of_edit_are_those_of_submit() -> None:
    names = {IN_EDITS.get(each.name, each.name) for each in fields(Changes)} - {"unset"}
    assert names <= {*OPTIONS.values(), *ELSEWHERE.values()}
    assert {field_of(each) for each in names} <= set(CHANGEABLE)


@pytest.mark.parametrize("field", [*OPTIONS, *ELSEWHERE])
def test_a_flag_names_its_field(field: str) -> None:
    assert flag_of(field).startswith("--")
    assert "_" not in flag_of(field)
    assert field_of(flag_of(field).removeprefix("--")) == field


def test_names_of_edit_and_unknown_words_are_read() -> None:
    assert field_of("to-site") == "sites"
    assert field_of("no-such") == "no_such"
    assert flag_of("no_such") == "--no-such"


def test_fields_are_set_by_what_was_given_alone() -> None:
    given = {"memory": 0, "tag": ["gpu"], "platform": [], "site": None, "env": {}, "id": "x"}
    assert fields_of(given) == {"memory_mb": 0, "tags": ["gpu"]}
    assert Changes(to_site=["A"], priority=0, input=["x"]).fields() == {"sites": ["A"], "priority": 0}
