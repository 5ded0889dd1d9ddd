"""What ARC's clients do with a job before they submit it."""

from tests.unit.jobdesc.languages.reading import fields
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.files_of_arc import join, local_path, platform, send, times_slots
from wms.jobdesc.loss_report import Origin


def draft(**said: object) -> JobDraft:
    made = JobDraft()
    for field, value in said.items():
        made.put(field, value, Origin(field))
    return made


def test_a_source_of_the_submitter_is_a_path() -> None:
    assert [local_path(each) for each in ("file:///a", "file://localhost/a", "b", "http://h")] == [
        "/a",
        "/a",
        "b",
        "http://h",
    ]


def test_a_relative_path_is_sent_once() -> None:
    made = draft(executable="a/../run.sh")
    send(made, "executable", ())
    send(draft(executable="run.sh"), "executable", {"run.sh"})
    assert [(each.name, each.executable) for each in made.local_files] == [("run.sh", True)]
    assert made.get("executable") == "./run.sh"


def test_needs_are_of_each_slot() -> None:
    made = draft(processors=4, memory_mb=10)
    times_slots(made, "memory_mb")
    times_slots(made, "cpu_time")
    assert (made.get("memory_mb"), made.get("cpu_time")) == (40, None)


def test_a_joined_program_runs_in_a_shell() -> None:
    made = draft(executable="/a", arguments=["b"])
    join(made)
    found = made.finished()
    assert found is not None
    assert fields(found)["arguments"][2:] == ["sh", "/a", "b"]


def test_platforms_have_the_names_that_nodes_tell() -> None:
    assert [platform(each) for each in ("AMD64", "x86_64")] == ["x86_64", "x86_64"]
