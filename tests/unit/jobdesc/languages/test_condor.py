"""HTCondor's submit files, as its manual gives examples."""

import pytest

from tests.unit.jobdesc.languages.reading import fates, one
from wms.errors import Rejected
from wms.jobdesc import InvalidDescription
from wms.jobdesc.languages.condor import looks_like, read
from wms.jobdesc.languages.translation import LocalFile

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
request_gpus = 1
max_retries = 2
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
        "tags": ["GPU"],
        "job_group": "mc",
        "attributes": {"Project": "x", "Size": 7},
        "inputs": [{"name": "b.dat", "sources": ["https://se.example.org/b.dat"]}],
        "outputs": [{"name": "r.root", "targets": ["https://se.example.org/r.root"]}],
        "requirements": 'OpSys == "LINUX" && TARGET.Memory > 5',
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
    assert found["transfer_input_files"] == ("kept", 17)
    assert found["periodic_hold"] == ("impossible", 22)
    assert "dir" not in found


def test_each_queue_statement_is_a_description() -> None:
    text = "executable = /bin/a\nqueue\nexecutable = /bin/b\nqueue 3\n"
    found = read(text.encode()).jobs(strict=False)
    assert [(each.executable, each.array) for each in found] == [("/bin/a", None), ("/bin/b", 3)]


def test_items_of_several_variables() -> None:
    text = "executable=/bin/a\narguments = $(name) $(n)\nqueue name, n from (\n a, 1\n b, 2\n)\n"
    found = one(read, text)
    assert found["arguments"] == ["{name}", "{n_}"]
    assert found["parameters"] == {"name": ["a", "b"], "n_": ["1", "2"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("executable = a", "no queue statement"),
        ("executable = a\nqueue x from items.txt", "its submit machine has"),
        ("executable = a\nqueue x matching *.dat", "its submit machine has"),
        ("if defined X\nexecutable = a\nendif\nqueue", "only HTCondor"),
        ("executable = $(x)\nqueue", "not defined"),
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
    with pytest.raises(InvalidDescription, match=said):
        read(text.encode()).jobs(strict=False)


def test_too_many_jobs_are_refused() -> None:
    with pytest.raises(Rejected):
        read(b"executable = /bin/a\nqueue 999999999").jobs(strict=False)


def test_the_old_syntax_of_arguments_is_split_at_blanks() -> None:
    assert one(read, "executable=/bin/a\narguments = a 'b c'\nqueue")["arguments"] == [
        "a",
        "'b",
        "c'",
    ]


@pytest.mark.parametrize(
    ("text", "said"), [(WHOLE, True), ("queue", True), ("queue = 'x'", False), ("[queue]\n", False)]
)
def test_a_submit_file_is_recognised(text: str, said: bool) -> None:  # noqa: FBT001 - an expected value
    assert looks_like(text.encode()) is said
