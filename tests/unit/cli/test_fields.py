"""Each field of a description has one option in all commands, and what is wrong with it is told by that option."""

from dataclasses import dataclass, fields

import msgspec
import pytest

from wms.cli.edit_options import EditOptions, field_of
from wms.cli.fields import fields_of, makes, options_of, sets
from wms.cli.options import Many
from wms.cli.submit_options import OPTIONS, NeedOptions, SubmitOptions, flag_of
from wms.jobdesc.changes import CHANGEABLE
from wms.jobdesc.description import JobDescription


def test_what_the_options_set_are_fields_of_a_description() -> None:
    names = {each.name for each in msgspec.structs.fields(JobDescription)}
    assert set(OPTIONS) <= names
    assert set(options_of(EditOptions)) <= set(CHANGEABLE)


def test_each_group_of_options_is_read() -> None:
    options = SubmitOptions()
    assert set(options.groups()) == {getattr(options, each.name) for each in fields(options)}


def test_an_option_of_edit_sets_what_it_sets_at_submission() -> None:
    edited = {
        name: "site" if option == "to_site" else option for name, option in options_of(EditOptions).items()
    }
    assert edited.items() <= OPTIONS.items()


@pytest.mark.parametrize("field", OPTIONS)
def test_a_flag_names_its_field(field: str) -> None:
    assert flag_of(field).startswith("--")
    assert "_" not in flag_of(field)
    assert field_of(flag_of(field).removeprefix("--")) == field


def test_names_of_edit_and_unknown_words_are_read() -> None:
    assert field_of("to-site") == "sites"
    assert field_of("no-such") == "no_such"
    assert flag_of("no_such") == "--no-such"


def test_fields_are_set_by_what_was_given_alone() -> None:
    assert fields_of(NeedOptions(memory=0, tag=["gpu"])) == {"memory_mb": 0, "tags": ["gpu"]}
    assert fields_of(NeedOptions(whole_node=True)) == {"whole_node": True}
    assert EditOptions(to_site=["A"], priority=0, input=["x"]).fields() == {"sites": ["A"], "priority": 0}


def test_an_option_from_whose_words_a_field_is_made_sets_none_by_itself() -> None:
    @dataclass
    class Options:
        memory: int | None = sets("memory_mb")
        env: Many | None = makes("environment")
        other: str | None = None

    assert fields_of(Options(memory=1, env=["A=1"], other="x")) == {"memory_mb": 1}
    assert options_of(Options) == {"memory_mb": "memory", "environment": "env"}
