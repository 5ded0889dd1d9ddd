from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.loss_report import LossNotes, Origin


def draft(**fields: object) -> JobDraft:
    made = JobDraft()
    for line, (name, value) in enumerate({"executable": "/bin/true", **fields}.items(), 1):
        made.put(name, value, Origin(name.upper(), line))
    return made


def test_fields_become_a_description() -> None:
    made = draft(cpu_time=60)
    made.append("arguments", "a", Origin("Argument", 7))
    made.append("arguments", "b", Origin("Argument", 8))
    made.put_item("environment", "HOME", "/x", Origin("Environment", 9))
    found = made.finished()
    assert found is not None
    assert (found.executable, found.cpu_time, found.arguments) == ("/bin/true", 60, ("a", "b"))
    assert found.environment == {"HOME": "/x"}
    assert [each.fate for each in made.notes.report().entries] == ["kept"] * 5


def test_requirements_are_joined() -> None:
    made = draft()
    made.require("other.A > 1", Origin("A", 2))
    made.require("other.B == 2 || other.C", Origin("B", 3))
    found = made.finished()
    assert found is not None
    assert found.requirements == "(other.A > 1) && (other.B == 2 || other.C)"


def test_a_value_against_the_rules_becomes_impossible() -> None:
    made = draft(cpu_time=0)
    found = made.finished()
    assert found is not None
    assert found.cpu_time == 86_400
    [loss] = made.notes.report().losses
    assert (loss.element, loss.line) == ("CPU_TIME", 2)
    assert "must be from 1" in loss.sentence


def test_a_conflict_leaves_the_field_out() -> None:
    made = draft(memory_mb=100, max_memory_mb=50)
    found = made.finished()
    assert found is not None
    assert found.max_memory_mb is None
    assert [each.element for each in made.notes.report().losses] == ["MAX_MEMORY_MB"]


def test_what_makes_another_job_refuses_it() -> None:
    made = draft(executable="")
    made.append("arguments", "\0", Origin("Argument", 5))
    assert made.finished() is None
    assert [(each.place, each.line) for each in made.problems] == [("EXECUTABLE", 1), ("Argument", 5)]


def test_a_job_without_a_program_is_refused() -> None:
    made = JobDraft()
    made.put("name", "x", Origin("JobName", 2))
    assert made.finished() is None
    assert [each.message for each in made.problems] == ["no program is named"]


def test_drafts_of_one_document_share_their_notes() -> None:
    notes = LossNotes()
    drafts = [JobDraft(notes), JobDraft(notes)]
    for line, each in enumerate(drafts, 1):
        each.put("executable", f"p{line}", Origin("Executable", line))
    found = drafted("x", drafts)
    assert [each.executable for each in found.descriptions] == ["p1", "p2"]
    assert [each.line for each in found.report.entries] == [1, 2]


def test_one_impossible_job_refuses_all() -> None:
    good, bad = draft(), JobDraft()
    bad.problem(Origin("Executable", 4), "is nowhere", "say where")
    found = drafted("x", [good, bad])
    assert found.descriptions == ()
    assert [str(each) for each in found.problems] == ["Executable (line 4): is nowhere; say where"]


def test_a_program_among_the_files_is_started_from_the_directory() -> None:
    made = draft(executable="prog")
    made.add_input("prog", "here/prog", Origin("InputSandbox", 3))
    found = made.finished()
    assert found is not None
    assert found.executable == "./prog"


def test_a_program_of_any_type_is_refused() -> None:
    made = draft(executable=["prog"])
    assert made.finished() is None
    assert [each.place for each in made.problems] == ["EXECUTABLE"]


def test_one_bad_item_does_not_drop_its_neighbours() -> None:
    made = draft(tags=["GPU", "not a tag", "SSD"])
    for line, name in enumerate(("a.txt", "/data/b.txt", "c.txt", "../d"), 5):
        made.append("output_sandbox", name, Origin(name, line))
    for name in ("Good", "A.B", "A"):
        made.put_item("attributes", name, 1, Origin(name))
    found = made.finished()
    assert found is not None
    assert found.output_sandbox == ("a.txt", "c.txt")
    assert found.tags == ("GPU", "SSD")
    assert found.attributes == {"Good": 1, "A": 1}
    report = made.notes.report()
    assert [each.element for each in report.losses] == ["A.B", "TAGS", "/data/b.txt", "../d"]
    assert [each.element for each in report.entries if each.fate == "kept"][-2:] == ["a.txt", "c.txt"]


def test_what_is_overruled_is_not_told_as_kept() -> None:
    made = draft(cpu_time=60)
    made.overrule("cpu_time", 70, Origin("Field", 3))
    assert [(each.element, each.fate) for each in made.notes.report().entries] == [
        ("EXECUTABLE", "kept"),
        ("CPU_TIME", "omitted"),
        ("Field", "kept"),
    ]
