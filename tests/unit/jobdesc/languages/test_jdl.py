"""The job description languages of DIRAC and gLite, as their manuals give examples."""

import pytest

from tests.unit.jobdesc.languages.reading import fates, one
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import satisfied
from wms.jobdesc import InvalidDescription
from wms.jobdesc.array import expand
from wms.jobdesc.languages.jdl import looks_like, read
from wms.jobdesc.languages.translation import LocalFile

DIRAC = """
# simulation
JobName = "Sim_%n";
JobGroup = "2026-MC";
Executable = "run.sh";
Arguments = "--seed %s 'two words'";
StdOutput = "std.out";
StdError = "std.err";
InputSandbox = {"run.sh", "LFN:/lhcb/user/conf.tgz"};
OutputSandbox = {"std.out", "std.err", "hist.root"};
InputData = "/lhcb/data/1.dst";
Site = "LCG.CERN.cern;LCG.PIC.es";
BannedSites = {"LCG.RAL.uk"};
Platform = "x86_64-el9";
CPUTime = 86400;
MinRAM = 2000; MaxRAM = 4000;
MinNumberOfProcessors = 2; MaxNumberOfProcessors = 8;
Tags = {"GPU"};
Priority = 5;
Parameters = 3; ParameterStart = 10; ParameterStep = 5; ParameterFactor = 2;
LogLevel = "DEBUG";
OutputSE = "CERN-USER";
"""

GLITE = """[
  Type = "Job"; JobType = "Normal";
  VirtualOrganisation = "atlas";
  Executable = "/bin/hostname";
  Environment = {"A=1", "B=x=y"};
  CpuNumber = 4; WholeNodes = true;
  RetryCount = 2; ShallowRetryCount = 5;
  Requirements = other.GlueCEStateStatus == "Production" && RegExp("cern", other.GlueCEUniqueID);
  Rank = -other.GlueCEStateEstimatedResponseTime;
  MyProxyServer = "px.example.org";
  MyOwn = "kept";
]"""


def test_a_parametric_job_of_dirac() -> None:
    found = one(read, DIRAC)
    assert found == {
        "executable": "./run.sh",
        "arguments": ["--seed", "{parameter}", "two words"],
        "name": "Sim_{n}",
        "job_group": "2026-MC",
        "cpu_time": 86_400,
        "memory_mb": 2_000,
        "max_memory_mb": 4_000,
        "min_processors": 2,
        "max_processors": 8,
        "sites": ["LCG.CERN.cern", "LCG.PIC.es"],
        "banned_sites": ["LCG.RAL.uk"],
        "platforms": ["x86_64-el9"],
        "tags": ["GPU"],
        "priority": 5,
        "output_sandbox": ["hist.root"],
        "inputs": [
            {"name": "conf.tgz", "sources": ["LFN:/lhcb/user/conf.tgz"]},
            {"name": "1.dst", "sources": ["lfn:/lhcb/data/1.dst"]},
        ],
        "stdout": "std.out",
        "stderr": "std.err",
        "parameters": {"parameter": ["10", "25", "55"]},
    }
    assert read(DIRAC.encode()).local_files == ((LocalFile("run.sh", "run.sh"),),)


def test_the_fates_of_dirac() -> None:
    found = fates(read, DIRAC)
    assert found["Executable"] == ("kept", 5)
    assert found["InputData"] == ("translated", 11)
    assert found["OutputSE"] == ("impossible", 22)


def test_a_job_of_glite() -> None:
    assert one(read, GLITE) == {
        "executable": "/bin/hostname",
        "environment": {"A": "1", "B": "x=y"},
        "processors": 4,
        "whole_node": True,
        "requirements": '(other.GlueCEStateStatus == "Production" && regexp("cern", other.GlueCEUniqueID))',
        "rank": "-other.GlueCEStateEstimatedResponseTime",
    }
    found = fates(read, GLITE)
    assert (found["MyProxyServer"], found["MyOwn"]) == (("omitted", 10), ("impossible", 11))


def test_a_parametric_job_of_glite() -> None:
    text = '[Executable="a"; Arguments="in_PARAM_.txt"; Parameters=10; ParameterStart=1; ParameterStep=3]'
    found = one(read, text)
    assert found["arguments"] == ["in{parameter}.txt"]
    assert found["parameters"] == {"parameter": ["1", "4", "7"]}


def test_lists_of_parameters() -> None:
    found = one(
        read, 'Executable="a"; Arguments="%(x)s %(y)s"; Parameters.x={"1","2"}; Parameters.y={"a","b"};'
    )
    assert found["arguments"] == ["{x}", "{y}"]
    assert found["parameters"] == {"x": ["1", "2"], "y": ["a", "b"]}


def test_a_collection_is_many_jobs() -> None:
    text = '[Type="collection"; RetryCount=0; nodes={[Executable="a"], [Executable="b"; RetryCount=4]}]'
    found = read(text.encode()).jobs(lenient=True)
    assert [(each.executable, each.max_attempts) for each in found] == [("a", 1), ("b", 5)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Executable = ", "is not JDL"),
        ('Arguments = "x";', "executable: no program is named"),
        ('[Executable = "a"; Executable = "b"]', "is not JDL"),
        ('Executable = "a"; Parameters = 100000000;', "values"),
        ("[" * 500, "is not JDL"),
    ],
)
def test_what_is_no_job_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said):
        read(text.encode()).jobs(lenient=True)


def test_losses_are_refused_in_strict_mode() -> None:
    with pytest.raises(InvalidDescription, match=r"OutputSE \(line 22\)"):
        read(DIRAC.encode()).jobs()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DIRAC, True),
        (GLITE, True),
        ('executable = "a"\narguments = ["b"]\n', False),
        ("[[jobs]]\nexecutable = 'a'\n", False),
        ('{"executable": "a"}', False),
    ],
)
def test_a_job_is_recognised(text: str, said: bool) -> None:  # noqa: FBT001 - an expected value
    assert looks_like(text.encode()) is said


@pytest.mark.parametrize(
    "attribute",
    [
        'Arguments = {"a", "b"}', 'Arguments = strcat("a", "b")', 'OutputData = { [ OutputFile = "x" ] }', "Environment = A", 'Environment = {"A=$HOME/x"}', 'OutputSandboxBaseDestURI = "gsiftp://h/"', 'Arguments = "a $HOME"', 'Arguments = "*.root"',
        'Prologue = "p.sh"', "HostNumber = 2", 'InputSandboxBaseURI = "gsiftp://h/"', "ShortDeadlineJob = 3", "MaxWallTime = 10",
        'OutputSandbox = strcat("a", "b")', 'VirtualOrganisationX = "a"', 'JobType = "Interactive"',
    ],
)  # fmt: skip
def test_what_would_be_another_job_is_refused(attribute: str) -> None:
    with pytest.raises(InvalidDescription):
        read(f'Executable = "/a"; {attribute};'.encode()).jobs()


def test_names_may_stand_without_quotes_as_dirac_writes_them() -> None:
    text = 'Executable = "a"; OutputSandbox = { out.log, std.err }; JobType = User; Parameters = {x, y}; ParameterStart = 0.;'
    found = one(read, text)
    assert found["output_sandbox"] == ["out.log", "std.err"]
    assert found["parameters"] == {"parameter": ["x", "y"]}


def test_processors_of_an_mpi_job() -> None:
    assert one(read, 'Executable = "/a"; JobType = "MPICH"; NodeNumber = 8;')["processors"] == 8


def test_each_job_has_its_own_files() -> None:
    found = read(
        b"""Executable = "/a"; Arguments = "%s %n '${n}'"; InputSandbox = {"%s", "c"}; Parameters = {"x", "y"};"""
    )
    assert [each.arguments for each in found.jobs()] == [("x", "0", "${n}"), ("y", "1", "${n}")]
    assert [[each.path for each in job] for job in found.local_files] == [["x", "c"], ["y", "c"]]
    many = read(b'Executable = "/a"; InputSandbox = {"%s"}; Parameters = 1001;')
    assert "more than 1,000" in many.problems[0].message


def test_braces_of_the_author_stay() -> None:
    (job,) = read(
        b"""Executable = "/a"; Arguments = "'${n}' {parameter} %s"; Parameters = 2; ParameterStep = 1;"""
    ).jobs()
    assert expand(job, 1).arguments == ("${n}", "{parameter}", "1")
    with pytest.raises(InvalidDescription, match="braces"):
        read(b"""Executable = "/a"; Arguments = "'${%n}'"; Parameters = 2;""").jobs()


def test_comments_and_a_byte_order_mark_may_stand_before_the_brackets() -> None:
    text = '\ufeff// my job\n/* two\nlines */\n[ Executable = "http://x#y"; ]; # end'.encode()
    assert looks_like(text)
    (job,) = read(text).jobs()
    assert job.executable == "http://x#y"
    assert fates(read, text.decode())["Executable"][1] == 4


def test_outputs_that_wait_at_the_element_wait_here() -> None:
    read(b'Executable = "/a"; OutputSandboxBaseDestURI = "gsiftp://localhost";').jobs()


@pytest.mark.parametrize(("said", "fitting"), [("true", "a/b-sdj"), ("false", "a/b-long")])
def test_jobs_of_short_deadlines_have_queues_of_their_own(said: str, fitting: str) -> None:
    text = f'Executable = "/a"; Requirements = other.A == 1; ShortDeadlineJob = {said};'
    wanted = Expression.parse(one(read, text)["requirements"])
    ads = [Ad.of({"A": 1, "GlueCEUniqueID": each}) for each in ("a/b-sdj", "a/b-long")]
    assert [ad for ad in ads if satisfied(wanted, ad)] == [Ad.of({"A": 1, "GlueCEUniqueID": fitting})]
