"""HTCondor's submit files, as its manual gives examples and as people write them: each finding with the right value."""

from functools import partial
from typing import Any

import pytest

from tests.unit.jobdesc.languages.condor_machine import MACHINE
from tests.unit.jobdesc.languages.reading import fates, fields, one
from wms.errors import Rejected
from wms.jobdesc import InvalidDescription
from wms.jobdesc.array import expand, jobs_in
from wms.jobdesc.languages import condor
from wms.jobdesc.languages.condor import looks_like
from wms.jobdesc.languages.translation import LocalFile

read = partial(condor.read, machine=MACHINE)

WHOLE = """# a sweep
executable = sim.sh
dir = out
arguments = "$(Process) '$(sample) x' ""quoted"" "
environment = "A=1 'B=two words'"
output = $(dir)/o.$(Process)
error = e
log = sim.log
request_cpus = 4
request_memory = 2 GB
request_disk = 1048576
batch_name = mc
+Project = "x"
My.Size = 7
transfer_input_files = a.dat, \\
    https://se.example.org/b.dat
transfer_output_files = r.root
transfer_output_remaps = "r.root = https://se.example.org/r.root"
requirements = OpSys == "LINUX" && TARGET.Memory > 5
periodic_hold = false
queue 2 sample in (a, b)
"""


def jobs(text: str) -> list[dict[str, Any]]:
    """Return the fields of each single job of a document, in the order of its descriptions."""
    found = read(text.encode()).jobs()
    return [fields(expand(each, n)) for each in found for n in range(jobs_in(each))]


def arguments(text: str) -> list[list[str]]:
    """Return the arguments of each job of a program with these lines."""
    return [each.get("arguments", []) for each in jobs(f"executable = e.sh\n{text}")]


def refused(text: str) -> str:
    """Return the reason why a document is refused."""
    with pytest.raises(InvalidDescription) as fault:
        read(text.encode()).jobs()
    return str(fault.value)


def test_a_whole_submit_file_is_read() -> None:
    assert one(read, WHOLE) == {
        "executable": "./sim.sh",
        "arguments": ["{n}", "{sample} x", '"quoted"'],
        "environment": {"A": "1", "B": "two words"},
        "stdout": "o.{n}",
        "stderr": "e",
        "processors": 4,
        "memory_mb": 2_048,
        "disk_mb": 1_024,
        "job_group": "mc",
        "attributes": {"Project": "x", "Size": 7},
        "inputs": [{"name": "b.dat", "sources": ["https://se.example.org/b.dat"]}],
        "outputs": [{"name": "r.root", "targets": ["https://se.example.org/r.root"]}],
        "requirements": "(other.MaxRAM > 5)",
        "array": 4,
        "parameters": {"sample": ["a", "a", "b", "b"]},
    }
    assert read(WHOLE.encode()).local_files == (
        (LocalFile("sim.sh", "sim.sh", executable=True), LocalFile("a.dat", "a.dat")),
    )


def test_each_command_has_its_fate_and_line() -> None:
    found = fates(read, WHOLE)
    assert found["executable"] == ("kept", 2)
    assert found["output"] == ("translated", 6)
    assert found["log"] == ("omitted", 8)
    assert found["transfer_input_files"] == ("kept", 15)
    assert found["periodic_hold"] == ("kept", 20)
    assert "dir" not in found


def test_each_queue_statement_is_a_description_and_jobs_are_counted_on() -> None:
    text = "executable = a\nqueue\nexecutable = b\narguments = $(Process)\nqueue 2\n"
    assert [(each["executable"], each.get("arguments")) for each in jobs(text)] == [
        ("./a", None), ("./b", ["1"]), ("./b", ["2"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queue arguments from (\nfirst\nsecond one\n)", [["first"], ["second", "one"]]),
        ("arguments = $(name) $(n)\nqueue name, n from (\n a, 1\n b, 2\n)", [["a", "1"], ["b", "2"]]),
        ("dir = /data\narguments = $(f) $(dir)\nqueue f from (\n$(dir)/a\n)", [["/data/a", "/data"]]),
        ("l = a b c\narguments = $(x)\nqueue x in $(l)", [["a"], ["b"], ["c"]]),
        ("arguments = $(all)\nqueue all from (\na b\nc d\n)", [["a", "b"], ["c", "d"]]),
        ("arguments = $(all)\nqueue all from (\na b\nc\n)", [["a", "b"], ["c"]]),
        ("arguments = $INT(Process,%03d) $(Row) $(Step)\nqueue 2 x in (p, q)", [["000", "0", "0"], ["001", "0", "1"], ["002", "1", "0"], ["003", "1", "1"]]),
        ("arguments = $Fn(f) $ENV(HOME) $(ClusterId) $(no)\nqueue f in (d/a.txt, b.dat)", [["a", "/home/me", "77"], ["b", "/home/me", "77"]]),
        ('arguments = \\"two\\"\nqueue', [['"two"']]),
        ("arguments = a \\\n# b\\\n c\nqueue", [["a", "c"]]),
        ("arguments = -c 'x=five; echo ${x} ${n} $(x) {n}'\nqueue x in (a, b)", [["-c", "'x=five;", "echo", "${x}", "${n}", v, "{n}'"] for v in "ab"]),
        ("arguments = $(x:none)\nqueue x, y from (\na 1\n ,2\n)", [["a"], ["none"]]),
        ("arguments = $(x)\nqueue x from items.txt", [["one", "1"], ["two", "2"]]),
        ("N = 2\narguments = $(Item)\nqueue $(N) matching files *.dat", [["a.dat"], ["a.dat"]]),
        ("arguments = $RANDOM_CHOICE(p,q) $RANDOM_INTEGER(3,9)\nqueue 2", [["p", "3"], ["p", "3"]]),
        ("arguments = a 'b c'\nqueue", [["a", "'b", "c'"]]),
        ("argument_1 = x\narguments = $(argument_1) $(v)\nqueue v from (\na\nb c\n)", [["x", "a"], ["x", "b", "c"]]),
    ],
)  # fmt: skip
def test_the_arguments_of_each_job(text: str, said: list[list[str]]) -> None:
    assert arguments(text) == said


def test_gpus_are_asked_for_with_their_memory_and_capability() -> None:
    text = (
        b"executable = e\nrequest_gpus = 2\ngpus_minimum_memory = 4GB\ngpus_minimum_capability = 7.5\nqueue"
    )
    [found] = read(text).jobs()
    assert found.gpus == 2
    assert found.requirements == "(other.GPUMemory >= 4096) && (other.GPUCapability >= 7.5)"


def test_an_array_of_many_jobs_stays_one_description() -> None:
    found = one(read, "executable=e\narguments=$INT(Process,%05d)\nqueue 5000")
    assert (found["array"], found["parameters"]["value_1"][4999]) == (5000, "04999")


def test_commands_that_vary_without_placeholders_make_descriptions_of_their_own() -> None:
    text = "executable=e\nrequest_cpus=$(c)\narguments=$(Process)\nqueue c in (1, 2, 1)"
    assert [(each.get("processors"), each["arguments"]) for each in jobs(text)] == [
        (None, ["0"]), (None, ["2"]), (2, ["1"]),
    ]  # fmt: skip
    assert "more than 1,000 descriptions" in refused("executable=e\nrequest_cpus=$(Process)\nqueue 1001")


def files(text: str) -> list[tuple[LocalFile, ...]]:
    return list(read(text.encode()).local_files)


def test_files_are_those_that_htcondor_sends() -> None:
    program = LocalFile("fit.sh", "/home/me/fit.sh", executable=True)
    assert files("executable = /home/me/fit.sh\nqueue") == [(program,)]
    assert files("executable = e\ninitialdir = r$(Process)\ninput = in\nqueue 2") == [
        (LocalFile("e", "e", executable=True), LocalFile("in", f"r{n}/in")) for n in range(2)
    ]
    found = files("executable = e\ntransfer_input_files = data, sub/more/, f$(Process).txt\nqueue")
    kept = files("executable = e\npreserve_relative_paths = true\ntransfer_input_files = d/a, ../b\nqueue")
    assert kept[0][1:] == (LocalFile("d/a", "d/a"), LocalFile("b", "../b"))
    assert found[0][1:] == (
        LocalFile("data", "data"),
        LocalFile("", "sub/more/"),
        LocalFile("f0.txt", "f0.txt"),
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("executable = mk.sh", {"output_sandbox": ["*"], "executable": "./mk.sh"}),
        ('executable = e\ninput = d/in.txt\ntransfer_output_files = ""', {"stdin": "in.txt", "executable": "./e"}),
        ("executable = e\ntransfer_output_files = $(none)\nrequest_cpus =\nmax_retries =", {"executable": "./e", "output_sandbox": ["*"]}),
        ('executable = e\ntransfer_output_files = a\ntransfer_output_remaps = "a = d/b"', {"executable": "./e", "output_sandbox": ["a"]}),
        ("executable = Rscript\ntransfer_executable = false\nuniverse = docker\ndocker_image = r", {"executable": "Rscript", "container": "docker://r", "output_sandbox": ["*"]}),
        ("executable = e\ntransfer_output_files = out/, a[1]", {"output_sandbox": ["out", "a[[]1]"], "executable": "./e"}),
        ("executable = /opt/p\ntransfer_executable = false", {"executable": "/opt/p", "output_sandbox": ["*"]}),
        ("executable = p\ntransfer_executable = false\ntransfer_input_files = x/p", {"executable": "./p", "output_sandbox": ["*"]}),
        ("executable = /bin/cat\nuniverse = docker\ndocker_image = alpine:3", {"executable": "/bin/cat", "container": "docker://alpine:3", "output_sandbox": ["*"]}),
        ('executable = e\n+SingularityImage = "/cvmfs/a/b:latest"', {"executable": "./e", "container": "/cvmfs/a/b:latest", "output_sandbox": ["*"]}),
        ("executable = e\ngetenv = MY_*\nenvironment = B=1;C=2", {"executable": "./e", "environment": {"B": "1", "C": "2", "MY_A": "1"}, "output_sandbox": ["*"]}),
        ("executable = e\ngetenv = true", {"executable": "./e", "environment": {"HOME": "/home/me", "MY_A": "1"}, "output_sandbox": ["*"]}),
        ("executable = e\nrequest_memory = 2 * 1024\nRequestCpus = 4.0", {"executable": "./e", "memory_mb": 2048, "processors": 4, "output_sandbox": ["*"]}),
        ('executable = e\n+JobFlavour = "longlunch"', {"executable": "./e", "wall_time": 7200, "output_sandbox": ["*"]}),
        ("executable = e\nsuccess_exit_code = 3", {"executable": "./e", "success_exit_codes": [3], "retries": 2, "output_sandbox": ["*"]}),
        ("executable = e\nmax_retries = 5\nretry_until = 7\non_exit_remove = (ExitBySignal == False) && (ExitCode == 0)", {"executable": "./e", "retries": 5, "final_exit_codes": [7], "output_sandbox": ["*"]}),
        ("executable = e\nmax_retries = 5\non_exit_remove = true", {"executable": "./e", "output_sandbox": ["*"]}),
        ("executable = e\non_exit_hold = (ExitBySignal == True) || (ExitCode != 0)\nperiodic_remove = JobStatus == 5", {"executable": "./e", "output_sandbox": ["*"]}),
        ('executable = e\n+RequestCpus = 4\n+Owner = undefined\n+AcctGroup = "x"', {"executable": "./e", "processors": 4, "output_sandbox": ["*"]}),
        ("executable = e\n+RequestGPUs = 2\nrequirements = TotalGPUs >= 1", {"executable": "./e", "gpus": 2, "requirements": "(other.GPUNumber >= 1)", "output_sandbox": ["*"]}),
        ("executable = e\njob_max_vacate_time = 120", {"executable": "./e", "grace_time": 120, "output_sandbox": ["*"]}),
        ("executable = e\noutdir = results\nnotification = Never\nrank = KFlops", {"executable": "./e", "output_sandbox": ["*"]}),
    ],
)  # fmt: skip
def test_what_a_command_makes_of_the_job(lines: str, said: dict[str, Any]) -> None:
    [found] = jobs(f"{lines}\nqueue")
    found.pop("cpu_time", None)
    assert found == said


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("max_retries = 100", "99"),
        ("retry_until = ExitCode > 100", "HTCondor alone"),
        ("on_exit_hold = ExitCode == 3", "Done or Failed"),
        ("on_exit_remove = ExitCode == 0", "without end"),
        ("periodic_remove = JobStatus == 2", "limits"),
        ("request_fpgas = 1", "do not tell"),
        ("should_transfer_files = NO", "directory of the submit machine"),
        ("when_to_transfer_output = NEVER", "no time"),
        ("send_credential = true", "credentials"),
        ("container_image = my.sif", "file of the submit machine"),
        ("universe = grid", "universe grid"),
        ("universe = container", "names no image"),
        ("requirements = HasJava", "HasJava"),
        ("requirements = (", "no expression"),
        ("request_memory = MemoryUsage * 2", "HTCondor alone"),
        ("input = data/", "use transfer_input_files"),
        ("transfer_executable = false\nuniverse = container\ncontainer_image = docker://r", "not sent"),
        ('arguments = a "b c"', "double quote"),
        ("environment = A", "without a value"),
        ("arguments = $$(Arch)", "runs the job"),
        ("x509userproxy = /tmp/x", "proxies"),
        ("transfer_executable = false", "not sent"),
        ("concurrency_limits = a", "wms limits"),
    ],
)
def test_what_cannot_be_carried_out_refuses_the_document(lines: str, said: str) -> None:
    assert said in refused(f"executable = e.sh\n{lines}\nqueue")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("executable = a", "no queue statement"),
        ("executable = a\nqueue x from none.txt", "cannot read none.txt"),
        ("executable = $(x)\nqueue", "names no program"),
        ("executable = a\nqueue 0", "queues no job"),
        ("executable = a\nx = $(y)\ny = $(x)\narguments = $(x)\nqueue", "hold each other"),
        (
            "".join(f"x{n + 1} = $(x{n})$(x{n})\n" for n in range(40))
            + "x0 = aaaa\nexecutable = $(x40)\nqueue",
            "hold each other",
        ),
        ("what is this", "no command"),
    ],
)
def test_what_is_no_submit_file_is_refused(text: str, said: str) -> None:
    with pytest.raises(Rejected, match=said):
        read(text.encode()).jobs(lenient=True)


@pytest.mark.parametrize(
    "lines", ["queue x from f", "queue matching *", "arguments = $ENV(HOME)\nqueue", "getenv = true\nqueue"]
)
def test_what_the_submit_machine_has_needs_one(lines: str) -> None:
    with pytest.raises(InvalidDescription, match="machine"):
        condor.read(f"executable = e\n{lines}".encode()).jobs()


def test_too_many_jobs_are_refused() -> None:
    with pytest.raises(Rejected):
        read(b"executable = /bin/a\nqueue 999999999").jobs(lenient=True)


@pytest.mark.parametrize(
    ("text", "said"), [(WHOLE, True), ("queue", True), ("queue = 'x'", False), ("[queue]\n", False)]
)
def test_a_submit_file_is_recognised(text: str, said: bool) -> None:  # noqa: FBT001 - an expected value
    assert looks_like(text.encode()) is said


def test_what_a_document_expands_to_is_bounded() -> None:
    read(b"executable = x\narguments = $(Process)\n" + b"queue 300000\n" * 3)
    many = b"".join(b"+a%d = 1\n" % n for n in range(500))
    with pytest.raises(Rejected) as refusal:
        read(b"executable = x\n" + many + b"queue\n" * 1_000)
    assert refusal.value.code == "EXPANDS_TOO_FAR"
