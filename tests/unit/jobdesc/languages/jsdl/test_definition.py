import pytest

from tests.unit.jobdesc.languages.jsdl.documents import document, fates, only
from wms.jobdesc import expand
from wms.jobdesc.languages.jsdl.definition import looks_like_jsdl, read_jsdl
from wms.jobdesc.problem import InvalidDescription

PROGRAM = "<p:Executable>prog</p:Executable><p:Argument>{n}</p:Argument><p:Argument>x</p:Argument>"
STAGED = "<DataStaging><FileName>prog</FileName><CreationFlag>overwrite</CreationFlag><Source><URI>http://x/p</URI></Source></DataStaging>"


def sweep(path: str, values: str = "<f:Value>1</f:Value><f:Value>2</f:Value>") -> str:
    return f"<s:Sweep><s:Assignment><s:Parameter>{path}</s:Parameter><f:Values>{values}</f:Values></s:Assignment></s:Sweep>"


def test_it_is_recognised_by_its_root() -> None:
    assert looks_like_jsdl(document())
    assert not looks_like_jsdl(b"<other/>")
    assert not looks_like_jsdl(b'{"executable": "JobDefinition"}')


@pytest.mark.parametrize("data", [b"<a/>", b"<JobDefinition/>", b"no XML", b"<!DOCTYPE a><JobDefinition/>"])
def test_other_documents_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidDescription):
        read_jsdl(data)


def test_a_staged_program_is_run_from_the_directory_of_the_job() -> None:
    found = only(document(PROGRAM, parts=STAGED))
    assert found.executable == "./prog"
    assert found.inputs[0].executable
    assert found.arguments == ("{n}", "x")


def test_what_is_unknown_is_told_with_its_line() -> None:
    found = read_jsdl(document(beside='<o:Other xmlns:o="urn:o"/>'))
    assert fates(found)["o:Other"] == ("impossible", 4)
    found.jobs(lenient=True)
    with pytest.raises(InvalidDescription):
        found.jobs()


def test_a_sweep_of_arguments_is_an_array() -> None:
    found = only(document(PROGRAM, beside=sweep("//p:Argument[2]")))
    assert [expand(found, index).arguments for index in range(2)] == [("{n}", "1"), ("{n}", "2")]


def test_a_sweep_of_programs_is_a_description_for_each() -> None:
    jobs = read_jsdl(document(PROGRAM, beside=sweep("//p:Executable"))).jobs()
    assert [each.executable for each in jobs] == ["1", "2"]


def test_sweeps_that_cannot_be_copied_so_often_are_refused() -> None:
    many = sweep("//p:Executable", "<f:Value>1</f:Value>" * 1_001)
    [problem] = read_jsdl(document(PROGRAM, beside=many)).problems
    assert "1,001 jobs" in problem.message


def test_sweeps_that_cannot_be_understood_are_problems() -> None:
    [problem] = read_jsdl(document(PROGRAM, beside=sweep("concat(//x, 1)"))).problems
    assert (problem.place, problem.line) == ("s:Parameter", 4)


def test_a_job_without_a_program_is_a_problem() -> None:
    found = read_jsdl(document(""))
    assert found.descriptions == ()
    assert [each.message for each in found.problems] == ["no program is named"]


def test_a_sweep_of_a_part_of_an_argument_is_an_array() -> None:
    program = "<p:Executable>prog</p:Executable><p:Argument>file-00.dat</p:Argument>"
    found = only(document(program, beside=sweep("substring(//p:Argument[1], 6, 2)")))
    assert [expand(found, index).arguments for index in range(2)] == [("file-1.dat",), ("file-2.dat",)]
    copies = read_jsdl(document(program, beside=sweep("substring(//p:Executable, 5)"))).jobs()
    assert [each.executable for each in copies] == ["prog1", "prog2"]
    braces = read_jsdl(document(PROGRAM, beside=sweep("substring(//p:Argument[1], 4)"))).jobs()
    assert [each.arguments[0] for each in braces] == ["{n}1", "{n}2"]


def test_parts_of_one_text_that_would_move_each_other_are_refused() -> None:
    both = sweep("substring(//p:Argument[1], 1, 1)") + sweep("substring(//p:Argument[1], 3, 1)")
    assert read_jsdl(document(PROGRAM, beside=both)).problems


@pytest.mark.parametrize(
    "data",
    [
        document(parts="<Resource><TotalCPUCount><Exact>8</Exact></TotalCPUCount></Resource>"),
        document(parts="<Stage/>"),
        document(beside="<Resources/>"),
        document(parts="<JobIdentification><Jobname>x</Jobname></JobIdentification>"),
        document(parts="<DataStaging><FileName>a</FileName><Url>http://h/a</Url></DataStaging>"),
        document(parts="<Resources><CandidateHosts><Host>a</Host></CandidateHosts></Resources>"),
        document().replace(
            b"</Application>", b"<TotalCPUCount><exact>8</exact></TotalCPUCount></Application>"
        ),
    ],
)
def test_elements_that_jsdl_does_not_have_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidDescription):
        read_jsdl(data).jobs()
    read_jsdl(data).jobs(lenient=True)


def test_preferences_without_a_prefix_are_read() -> None:
    text = "<JobPreferences><JobRequirement><LatestRelativeStart>30</LatestRelativeStart></JobRequirement></JobPreferences>"
    (found,) = read_jsdl(document(beside=text)).jobs()
    assert found.preferences is not None
    assert found.preferences.latest_start_after == 1_800


def test_no_standard_input_and_the_scratch_space_are_the_default() -> None:
    program = '<p:Executable>/a</p:Executable><p:Input>/dev/null</p:Input><p:Output filesystemName="SCRATCH">out</p:Output>'
    (found,) = read_jsdl(document(program)).jobs()
    assert (found.stdin, found.stdout) == ("", "out")
