"""Tables in place of structs, as a careless program gives them."""

from typing import Any

from wms.jobdesc.brokering_conflicts import typed
from wms.jobdesc.description import JobDescription
from wms.jobdesc.preferences import JobPreferences
from wms.jobdesc.staged_file import InputFile


def test_plain_tables_become_structs() -> None:
    careless: dict[str, Any] = {
        "inputs": ({"name": "a", "sources": ["file:///a"]},),
        "preferences": {"reservation": False},
    }
    found = typed(JobDescription(executable="a", **careless))
    assert found.inputs == (InputFile(name="a", sources=("file:///a",)),)
    assert found.preferences == JobPreferences(reservation=False)


def test_what_is_typed_stays() -> None:
    plain = JobDescription(executable="a")
    assert typed(plain) is plain
