"""ARC's xRSL, as its manual gives examples, and our descriptions written in it."""

import pytest

from tests.unit.jobdesc.languages.reading import fates, one
from wms.jobdesc import InvalidDescription
from wms.jobdesc.languages.translation import LocalFile
from wms.jobdesc.languages.xrsl import looks_like, read

WHOLE = """& (* an analysis *)
 (executable = "run.sh")
 (arguments = "-n" "10 events" 'it''s')
 (environment = ("MODE" "fast") ("EMPTY" ""))
 (inputFiles = ("run.sh" "") ("data.root" "https://se.example.org/data.root;cache=no"))
 (executables = "data.root")
 (outputFiles = ("result.root" "davs://se.example.org/result.root") ("log" "") ("/" ""))
 (cpuTime = "2 hours") (wallTime = 180) (memory = 2000) (disk = "5 GB")
 (stdin = "cards") (stdout = "out.txt") (stderr = "err.txt")
 (jobName = "analysis") (count = 4) (rerun = 2) (priority = 70)
 (runTimeEnvironment = "APPS/HEP/ROOT-6.28")
 (| (opsys = "linux") (opsys = "almalinux"))
 (queue = "long") (cluster != "bad.example.org")
 (exclusiveExecution = "yes")
 (startTime = "2026-08-11 10:00")
 (benchmarks = ("specFP2000" "1750" "45 minutes"))
 (notify = "e me@example.org") (middleware = "ARC")
"""


def test_a_whole_request_is_read() -> None:
    assert one(read, WHOLE) == {
        "executable": "./run.sh",
        "arguments": ["-n", "10 events", "it's"],
        "environment": {"MODE": "fast", "EMPTY": ""},
        "inputs": [
            {"name": "data.root", "sources": ["https://se.example.org/data.root"], "executable": True}
        ],
        "outputs": [{"name": "result.root", "targets": ["davs://se.example.org/result.root"]}],
        "output_sandbox": ["log", "**"],
        "cpu_time": 7_200,
        "wall_time": 10_800,
        "memory_mb": 8_000,
        "disk_mb": 5_120,
        "stdin": "cards",
        "stdout": "out.txt",
        "stderr": "err.txt",
        "name": "analysis",
        "processors": 4,
        "priority": 7,
        "grid_ces": ["long"],
        "whole_node": True,
        "requirements": (
            '(member("APPS/HEP/ROOT-6.28", other.GlueHostApplicationSoftwareRunTimeEnvironment)) && '
            '(other.GlueCEInfoHostName != "bad.example.org") && '
            '(other.GlueHostOperatingSystemName == "linux" || other.GlueHostOperatingSystemName == "almalinux")'
        ),
        "preferences": {
            "earliest_start": "2026-08-11T10:00:00Z",
            "benchmarks": [{"name": "specFP2000", "result": 1750.0, "seconds": 2700.0}],
        },
    }
    assert read(WHOLE.encode()).local_files == (
        (LocalFile("run.sh", "run.sh", executable=True), LocalFile("cards", "cards")),
    )


def test_each_element_has_its_fate_and_line() -> None:
    found = fates(read, WHOLE)
    assert found["executable"] == ("kept", 2)
    assert found["priority"] == ("translated", 10)
    assert found["notify"] == ("omitted", 17)


def test_losses_are_refused_in_strict_mode() -> None:
    with pytest.raises(InvalidDescription, match=r"middleware \(line 17\): use grid_middlewares") as refused:
        read(WHOLE.encode()).jobs()
    assert len(refused.value.problems) == 1


def test_several_requests_are_several_jobs() -> None:
    found = read(b'+(&(executable="a")(middleware="x"))(&(executable="/b"))')
    assert [each.executable for each in found.jobs(lenient=True)] == ["./a", "/b"]
    assert [each.element for each in found.report.losses] == ["middleware"]


def test_variables_are_put_in() -> None:
    text = '&(rsl_substitution=("BASE" "https://h"))(executable="a")(inputfiles=("x" $(BASE)#"/x"))'
    assert one(read, text)["inputs"] == [{"name": "x", "sources": ["https://h/x"]}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("&(executable=a", "is missing"),
        ("(executable)", "is missing"),
        ('&(executable="a)', "means nothing"),
        ("&(executable=$(X))", "does not define"),
        ("&" + "(&" * 30 + "(executable=a)" + ")" * 30, "deeper"),
        ("&(count=2)", "executable: no program is named"),
        ("&(executable=a)(memory=much)", ""),
        (
            '&(rsl_substitution=("A0" "xxxxxxxxxx"))'
            + "".join(f'(rsl_substitution=("A{n + 1}" $(A{n})#$(A{n})))' for n in range(40))
            + "(executable=$(A40))",
            "joins a text",
        ),
    ],
)
def test_what_is_no_request_is_refused(text: str, said: str) -> None:
    if said:
        with pytest.raises(InvalidDescription, match=said):
            read(text.encode()).jobs(lenient=True)
    else:
        assert fates(read, text)["memory"] == ("impossible", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("& (executable=a)", True),
        ("(* c *) +(&(executable=a))", True),
        ("executable = 1", False),
        ("[a = 1]", False),
    ],
)
def test_a_request_is_recognised(text: str, said: bool) -> None:  # noqa: FBT001 - an expected value
    assert looks_like(text.encode()) is said


def files(text: str) -> list[tuple[str, str]]:
    return [(each.name, each.path) for job in read(text.encode()).local_files for each in job]


def test_a_relative_program_and_its_input_are_sent() -> None:
    text = '&(executable="bin/run.sh")(stdin="./cards")'
    assert files(text) == [("bin/run.sh", "bin/run.sh"), ("cards", "cards")]
    assert one(read, text)["executable"] == "bin/run.sh"
    assert files('&(executable="/bin/sh")(stdin="/dev/null")') == []
    assert files('&(executable="a")(inputfiles=("a" "http://h/a"))') == []


def test_files_of_the_submitter_are_sent_and_come_back() -> None:
    text = '&(executable=/a)(inputfiles=("x" "file:///home/me/y"))(outputfiles=("b" "b2")("c" "file:///home/me/c")("d" "http://h/d"))'
    assert files(text) == [("x", "/home/me/y")]
    found = one(read, text)
    assert found["output_sandbox"] == ["b", "c"]
    assert [each["name"] for each in found["outputs"]] == ["d"]


def test_errors_are_joined_to_the_output_as_asked() -> None:
    found = one(read, '&(executable=/bin/ls)(arguments="a b")(join=yes)(gmlog="log")')
    assert (found["executable"], found["arguments"]) == (
        "/bin/sh",
        ["-c", 'exec "$@" 2>&1', "sh", "/bin/ls", "a b"],
    )
    assert "arguments" not in one(read, "&(executable=/bin/ls)(join=no)")


def test_every_node_runs_linux() -> None:
    assert "requirements" not in one(read, '&(executable=/a)(opsys="linux")')
    assert "x86_64" in one(read, "&(executable=/a)(architecture=amd64)")["requirements"]


@pytest.mark.parametrize(
    "relation",
    [
        '(arguments=("a" "b"))', '(environment=(("A" "1")))', '(environment="A" "1")', "(dryrun=yes)", "(action=cancel)",
        '(runtimeenvironment>="X-1.0")', '(opsys>="linux-2.4")', "(memory<=2000)", '(runtimeenvironment="ENV/SINGULARITY" "image")',
        '(executable="$VAR/prog")', "(unknown=1)",
    ],
)  # fmt: skip
def test_what_would_be_another_job_is_refused(relation: str) -> None:
    with pytest.raises(InvalidDescription):
        read(f"&(executable=/a){relation}".encode()).jobs()


def test_the_directory_of_logs_is_no_output() -> None:
    text = '&(executable="/a")(gmlog="log")(outputfiles=("log" "")("out" ""))'
    assert one(read, text)["output_sandbox"] == ["out"]


def test_a_program_among_the_inputs_may_be_executed() -> None:
    found = read(b'&(executable="run.sh")(inputfiles=("run.sh" "")("data" ""))').local_files
    assert [(each.name, each.executable) for each in found[0]] == [("run.sh", True), ("data", False)]
