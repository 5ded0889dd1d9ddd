from tests.unit.jobdesc.languages.jsdl.documents import document, fates, only
from wms.jobdesc.languages.jsdl.definition import read_jsdl
from wms.jobdesc.staged_file import InputFile, OutputFile


def staging(text: str, flag: str = "overwrite", name: str = "a") -> str:
    return f"<DataStaging><FileName>{name}</FileName><CreationFlag>{flag}</CreationFlag>{text}</DataStaging>"


SOURCE = "<Source><URI> http://x/a </URI><wms:Replica>http://y/a</wms:Replica></Source>"
TARGET = "<Target><URI>s3://b/a</URI></Target>"


def test_files_come_and_go() -> None:
    found = only(document(parts=staging(SOURCE) + staging(TARGET) + staging(TARGET.replace("b/", "c/"))))
    assert found.inputs == (InputFile(name="a", sources=("http://x/a", "http://y/a")),)
    assert found.outputs == (OutputFile(name="a", targets=("s3://b/a", "s3://c/a")),)


def test_the_last_source_of_a_file_counts() -> None:
    found = only(document(parts=staging(SOURCE) + staging("<Source><URI>http://z/a</URI></Source>")))
    assert found.inputs == (InputFile(name="a", sources=("http://z/a",)),)


def test_a_target_without_a_uri_is_an_output() -> None:
    assert only(document(parts=staging("<Target/>"))).output_sandbox == ("a",)


def test_nothing_is_appended_or_left_behind() -> None:
    found = read_jsdl(
        document(parts=staging("<DeleteOnTermination>false</DeleteOnTermination>" + TARGET, "append"))
    )
    assert fates(found)["CreationFlag"][0] == fates(found)["DeleteOnTermination"][0] == "impossible"


def test_an_input_that_cannot_come_refuses_the_job() -> None:
    [problem] = read_jsdl(document(parts=staging("<Source><URI>klingon://x</URI></Source>"))).problems
    assert (problem.place, problem.line) == ("DataStaging", 3)
