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
 (notify = "e me@example.org")
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
        "memory_mb": 2_000,
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
    assert read(WHOLE.encode()).local_files == ((LocalFile("run.sh", "run.sh"),),)


def test_each_element_has_its_fate_and_line() -> None:
    found = fates(read, WHOLE)
    assert found["executable"] == ("kept", 2)
    assert found["priority"] == ("translated", 10)
    assert found["notify"] == ("impossible", 17)


def test_losses_are_refused_in_strict_mode() -> None:
    with pytest.raises(InvalidDescription, match=r"notify \(line 17\): nobody is written to") as refused:
        read(WHOLE.encode()).jobs(strict=True)
    assert len(refused.value.problems) == 1


def test_several_requests_are_several_jobs() -> None:
    found = read(b'+(&(executable="a")(acl="x"))(&(executable="b"))')
    assert [each.executable for each in found.jobs(strict=False)] == ["a", "b"]
    assert [each.element for each in found.report.losses] == ["acl"]


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
            read(text.encode()).jobs(strict=False)
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
