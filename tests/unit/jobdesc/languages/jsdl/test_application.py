import pytest

from tests.unit.jobdesc.languages.jsdl.documents import SPACES, document, fates, only
from wms.jobdesc.languages.jsdl.definition import read_jsdl

EXECUTABLE = "<p:Executable> /bin/x </p:Executable>"


def test_a_posix_application() -> None:
    found = only(
        document(
            EXECUTABLE + "<p:Argument>a\nb</p:Argument><p:Input>in</p:Input><p:Output>out</p:Output><p:Error>err</p:Error>"
            '<p:Environment name="A">1</p:Environment><p:WallTimeLimit>60</p:WallTimeLimit><p:MemoryLimit>1048577</p:MemoryLimit>'
            "<p:CPUTimeLimit>30</p:CPUTimeLimit>"
        )
    )  # fmt: skip
    assert (found.executable, found.arguments, found.environment) == ("/bin/x", ("a b",), {"A": "1"})
    assert (found.stdin, found.stdout, found.stderr) == ("in", "out", "err")
    assert (found.wall_time, found.cpu_time, found.max_memory_mb) == (60, 30, 2)


@pytest.mark.parametrize("name", ["CoreDumpLimit", "UserName", "StackSizeLimit", "WorkingDirectory"])
def test_what_has_no_field_is_impossible(name: str) -> None:
    found = read_jsdl(document(f"{EXECUTABLE}\n<p:{name}>7</p:{name}>"))
    assert fates(found)[f"p:{name}"] == ("impossible", 3)


@pytest.mark.parametrize("digits", ["9" * 5_000, "0", "99999999999"])
def test_limits_out_of_range_are_impossible(digits: str) -> None:
    found = read_jsdl(document(f"{EXECUTABLE}<p:WallTimeLimit>{digits}</p:WallTimeLimit>"))
    assert fates(found)["p:WallTimeLimit"][0] == "impossible"
    assert found.jobs(lenient=True)[0].wall_time is None


def test_a_path_on_an_unknown_file_system_is_a_problem() -> None:
    found = read_jsdl(document('<p:Executable filesystemName="HOME">x</p:Executable>'))
    assert "HOME" in found.problems[0].message


def test_processes_are_started_by_mpirun() -> None:
    data = f"""<JobDefinition {SPACES}><JobDescription><Application><m:SPMDApplication><p:Executable>./x</p:Executable>
<p:Argument>a</p:Argument><m:NumberOfProcesses>4</m:NumberOfProcesses><m:ThreadsPerProcess>2</m:ThreadsPerProcess>
<m:SPMDVariation>http://www.ogf.org/jsdl/2007/02/jsdl-spmd/OpenMPI</m:SPMDVariation>
</m:SPMDApplication></Application></JobDescription></JobDefinition>""".encode()
    found = only(data)
    assert (found.executable, found.arguments) == ("mpirun", ("-n", "4", "./x", "a"))
    assert found.processors == 8


def test_the_hpc_profile_leaves_white_space() -> None:
    data = f"""<JobDefinition {SPACES}><JobDescription><Application>
<h:HPCProfileApplication xmlns:h="http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa"><h:Executable>x</h:Executable>
<h:Argument>a\tb</h:Argument></h:HPCProfileApplication></Application></JobDescription></JobDefinition>""".encode()
    assert only(data).arguments == ("a\tb",)
