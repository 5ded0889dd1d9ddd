"""Bad input to the command line: each prints what is wrong and where, and ends with the right code, without a system."""

import inspect
import io
import json
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from cyclopts import App

from wms.cli.__main__ import run
from wms.cli.app import COMMANDS, app_for
from wms.messages.limits import Limit
from wms.messages.replies import LimitLine

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a directory of the test's own, without a system."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WMS_DATA", str(tmp_path / "none"))
    return tmp_path


def refused(capsys: Captured, *arguments: str, code: int = 2) -> str:
    assert run(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert captured.err.startswith("wms: ")
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sbmit"], 'Did you mean "submit"'),
        (["submit", "--arry", "3", "--", "echo"], "Did you mean --array"),
        (["submit"], "there is nothing to submit"),
        (["shares", "set", "lhcb", "2000"], "write VO/GROUP"),
        (["limits", "set", "--site", "A", "--attribute", "alice", "--max", "5"], "write owner=alice"),
        (["limits", "set", "--site", "A"], "one of --max, --rate, --waiting"),
        (["limits", "set", "--site", "A", "--max", "5", "--rate", "1"], "one of --max, --rate, --waiting"),
        (["limits", "set", "--max", "5"], "names its site, or * for each"),
        (["limits", "set", "--site", "A", "--max", "-1"], "Must be 0 to"),
        (["limits", "set", "--site", "A", "--rate", "0"], "Must be 0.001 to 1e9"),
        (["limits", "set", "--site", "A", "--attribute", "owner=*", "--waiting", "5"], "wait at no site"),
        (["limits", "set", "--attribute", "tag=gpu", "--waiting", "5"], "owner, owner_group, vo"),
        (["submit", "./p", "-x"], "stands after --"),
        (["submit", "--dry-run", "job.jdl"], "cannot read job.jdl"),
        (["submit", "--dry-run", "s.csv"], "looks like a table"),
        (["submit", "--dry-run", "none.json", "job.jdl"], "cannot read none.json"),
        (["submit", "--dry-run", "--input", "a", "b", "--", "./p"], '"b" stands before --'),
        (["submit", "--memory", "1.5", "--", "echo"], "--memory: needs a unit"),
        (["submit", "--param", "a=1,,2", "--", "echo"], "value 2 is empty"),
        (["jobs", "--timeout", "0"], "--timeout"),
        (["jobs", "--since", "yesterday"], "--since: must be how long ago"),
        (["logs", "7", "--tail", "1M"], "1 to 64K"),
        (["submit", "--array", "x", "--", "echo"], "--array"),
        (
            ["submit", "--array", "1000000000", "--dry-run", "--", "echo"],
            "--array: must be from 1 to 1,000,000",
        ),
        (["submit", "--array", "0", "--dry-run", "--", "echo"], "--array: must be"),
        (["submit", "--cpu-time", "soon", "--", "echo"], "--cpu-time: must be a time such as"),
        (["submit", "--memory", "much", "--", "echo"], "--memory: must be a size such as"),
        (["submit", "--memory", "9999999T", "--dry-run", "--", "echo"], "--memory"),
        (["submit", "--priority", "11", "--dry-run", "--", "echo"], "--priority: must be from 0 to 10"),
        (["submit", "--env", "NAME", "--dry-run", "--", "echo"], "is no NAME=VALUE"),
        (["submit", "--env", "A=1", "--env", "A=2", "--dry-run", "--", "echo"], "twice"),
        (["submit", "--site", "A B", "--dry-run", "--", "echo"], "--site[0]"),
        (["submit", "--name", "a\x1b[31mb", "--dry-run", "--", "echo"], "control or unprintable"),
        (
            ["submit", "--output", "../../etc/passwd", "--dry-run", "--", "echo"],
            "--output[0]: must stay inside",
        ),
        (["submit", "--output", "/etc/passwd", "--dry-run", "--", "echo"], "must be relative"),
        (["submit", "--input", "no-such-file", "--dry-run", "--", "echo"], "there is no file no-such-file"),
        (["submit", "--dry-run", "--", "../prog"], "lies outside this directory"),
        (["submit", "--dry-run", "--", "a/../../prog"], "lies outside this directory"),
        (["submit", "--dry-run", "--", "./prog"], "there is no program ./prog here"),
        (["submit", "--param", "f=1,2", "--param", "g=1", "--dry-run", "--", "echo"], "--parameter g"),
        (["submit", "--env", "A B=1", "--", "echo"], "--env A B: the text"),
        (
            ["submit", "--array", "1-10", "--", "echo"],
            "10 makes the jobs 0 to 9; --series i=start=1,count=10",
        ),
        (["submit", "--nodes=2", "--", "echo"], "the same here: a job runs on one node"),
        (["submit", "--mem", "5G", "--", "echo"], "the same here: `--memory 2G`"),
        (["submit", "-N", "2", "--", "echo"], "there is no option -N here"),
        (["submit", "no-such.toml"], "cannot read no-such.toml"),
        (["kill"], "no job is named"),
        (["kill", "5-1"], "ends before it begins"),
        (["kill", "--state", "Runing"], "did you mean Running"),
        (["jobs", "sim*"], "--name"),
        (["rm"], "no job is named"),
        (["output", "7", "--flat", "--pattern", "{file}"], "two different things"),
        (["output", "7", "--pattern", "{id}"], "has no {file}"),
        (["jobs", "--columns", "size"], "jobs have no column size"),
        (["jobs", "--format", "xml"], "--format"),
        (["jobs", "--limit", "-1"], "--limit"),
        (["why", "7", "--elements", "-1"], "--elements"),
        (["jobs", "Failed"], "did you mean --state Failed?"),
        (["queues", "Failed"], "unexpected argument 'Failed'"),
        (["site", "ban", "CERN"], "see wms site ban --help"),
        (["limits", "set", "--site", "A", "--max", "5", "--burst", "0"], "--burst"),
        (["jobs"], "there is no system in"),
        (["status"], "`wms up` starts one there"),
        (["token", "create"], "a token needs an owner"),
    ],
)
def test_what_is_wrong_is_said(capsys: Captured, arguments: list[str], said: str) -> None:
    assert said in " ".join(refused(capsys, *arguments).split())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "j.json",
            '{"executable": "echo", "exeutable": "x"}',
            'j.json: exeutable: unknown key; did you mean "exec',
        ),
        ("j.json", '{"executable": "a", "executable": "b"}', "j.json: executable: the key is given twice"),
        ("j.json", '{"executable": 7}', "j.json: executable: must be a text"),
        ("j.json", '{"executable": "e", "cpu_time": "600"}', "write 600 without quotes"),
        ("j.json", '[{"executable": "e"}, {"arguments": "x"}]', "j.json: jobs[1].executable: is missing"),
        ("j.json", '{"executable": "e", "array": 1000000000}', "must be from 1 to 1,000,000 jobs"),
        ("j.json", '{"executable": "e", "output_sandbox": ["../x"]}', "must stay inside the job's directory"),
        ("j.json", '{"executable": "e\\u0000"}', "control or unprintable character"),
        ("j.json", "[" * 100_000, "is nested deeper than"),
        ("j.json", "{", "is not JSON"),
        ("j.json", "", "is not JSON"),
        ("j.jsonl", '{"executable": "e"}\n{"executable": 1}\n', "j.jsonl: jobs[1].executable (line 2)"),
        ("j.toml", 'executable = "e"\nmemory = "2G"\n', "j.toml: memory (line 2): unknown key; did you mean"),
        ("j.toml", 'executable = "e"\nexecutable = "f"\n', "is not TOML"),
        ("j.toml", "executable = \n", "line 1"),
        ("j.toml", 'executable = "e"\nowner = "root"\n', "the token says whose job it is"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(
    capsys: Captured, place: Path, name: str, text: str, said: str
) -> None:
    (place / name).write_text(text)
    assert said in " ".join(refused(capsys, "submit", "--dry-run", name).split())


def test_every_problem_of_every_job_is_said_at_once(capsys: Captured, place: Path) -> None:
    (place / "many.json").write_text(json.dumps([{"executable": "e", "priority": 10 + n} for n in range(5)]))
    said = refused(capsys, "submit", "--dry-run", "many.json")
    assert [f"jobs[{n}].priority" in said for n in range(5)] == [False, True, True, True, True]


def test_a_file_of_a_hundred_megabytes_is_refused_at_once(capsys: Captured, place: Path) -> None:
    with (place / "huge.json").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert "huge.json: the document has" in refused(capsys, "submit", "--dry-run", "huge.json")


def test_what_is_no_text_is_refused(capsys: Captured, place: Path) -> None:
    (place / "latin.json").write_bytes(b'{"executable": "caf\xe9"}')
    assert "is not UTF-8: line 1" in refused(capsys, "submit", "--dry-run", "latin.json")


def test_a_program_that_may_not_be_executed_is_said(capsys: Captured, place: Path) -> None:
    (place / "prog").write_text("#!/bin/sh\n")
    assert "chmod +x ./prog" in refused(capsys, "submit", "--dry-run", "--", "./prog")


def test_a_faulty_client_file_names_its_place(capsys: Captured, place: Path) -> None:
    (place / "none").mkdir()
    (place / "none" / "client.toml").write_text('[auth]\ntoken_file = "x"\n[kafka]\nbootstap = "y"\n')
    assert "bootstap" in refused(capsys, "jobs")
    (place / "none" / "client.toml").write_text('[auth]\ntoken_file = "x"\n')
    assert f"no token in {place}/none/x" in refused(capsys, "jobs", code=3)


def test_errors_for_programs_are_json_on_standard_output(capsys: Captured) -> None:
    assert run(["kill", "5-1", "--json"]) == 2
    captured = capsys.readouterr()
    fault = json.loads(captured.out)["error"]
    assert (fault["code"], fault["remedy"]) == ("BAD_SELECTOR", "write 1-5")


def planned(capsys: Captured, *arguments: str) -> dict[str, object]:
    assert run(["submit", "--dry-run", "--json", *arguments]) == 0
    plan: dict[str, object] = json.loads(capsys.readouterr().out)
    return plan


def test_flags_make_the_description_that_they_say(capsys: Captured, place: Path) -> None:
    (place / "prog").write_text("#!/bin/sh\n")
    (place / "prog").chmod(0o755)
    (place / "data").mkdir()
    (place / "data" / "a.txt").write_text("a")
    plan = planned(
        capsys,
        *(
            "--cpu-time",
            "10m",
            "--memory",
            "2G",
            "--site",
            "A",
            "--tag",
            "gpu",
            "--array",
            "1000",
            "--name",
            "s-{n}",
        ),
        *(
            "-e",
            "MODE=fast",
            "--output",
            "*.txt",
            "--input",
            "data",
            "--",
            "./prog",
            "{n}",
            "--tag",
            "-x",
            "--",
        ),
    )
    assert plan["jobs"] == 1_000
    assert plan["descriptions"] == [
        {
            "executable": "./prog",
            "arguments": ["{n}", "--tag", "-x", "--"],
            "environment": {"MODE": "fast"},
            "name": "s-{n}",
            "cpu_time": 600,
            "memory_mb": 2048,
            "sites": ["A"],
            "tags": ["gpu"],
            "output_sandbox": ["*.txt"],
            "array": 1000,
        }
    ]
    assert plan["input_files"] == ["data/a.txt", "prog"]
    assert plan["first_commands"] == [f"./prog {n} --tag -x --" for n in range(3)]


def test_flags_go_before_what_files_say(capsys: Captured, place: Path) -> None:
    (place / "j.toml").write_text('executable = "echo"\ncpu_time = 5\nenvironment = {A = "1", B = "1"}\n')
    plan = planned(capsys, "j.toml", "--cpu-time", "1m", "--env", "B=2")
    assert plan["descriptions"] == [
        {"executable": "echo", "environment": {"A": "1", "B": "2"}, "cpu_time": 60}
    ]


SUBMIT_OPTIONS = {
    "--table": "t.csv",
    "--name": "x",
    "--array": "1",
    "--param": "a=1",
    "--env": "A=1",
    "--group": "g",
    "--cpu-time": "1m",
    "--wall-time": "1m",
    "--grace-time": "1m",
    "--gpus": "1",
    "--memory": "1G",
    "--disk": "1G",
    "--max-memory": "1G",
    "--processors": "1",
    "--min-processors": "1",
    "--setup": "s",
    "--station": "s",
    "--grid-middleware": "m",
    "--pilot-type": "p",
    "--submit-pool": "p",
    "--series": "a=count=1",
    "--tag": "t",
    "--platform": "p",
    "--container": "docker://busybox",
    "--site": "A",
    "--banned-site": "B",
    "--ce": "c",
    "--job-type": "t",
    "--requirements": "true",
    "--rank": "1",
    "--attribute": "a=1",
    "--preferences": "prefs.xml",
    "--input": "in.txt",
    "--output": "*.out",
    "--stdout-limit": "1K",
    "--stderr-limit": "1K",
    "--priority": "2",
    "--max-attempts": "2",
    "--retries": "2",
    "--final-exit-code": "3",
    "--success-exit-code": "0",
    "--after": "7,10-12",
    "--after-any": "8",
    "--input-from": "9",
    "--id": "x",
}


def test_every_option_that_takes_a_value_takes_one(capsys: Captured, place: Path) -> None:
    from wms.cli.submit_options import SubmitOptions

    (place / "j.toml").write_text('executable = "echo"\n')
    (place / "in.txt").write_text("x")
    (place / "t.csv").write_text("a\n1\n")
    (place / "prefs.xml").write_text("<JobPreferences/>")
    for option, value in SUBMIT_OPTIONS.items():
        plan = planned(capsys, option, value, "j.toml")
        assert str(plan["descriptions"]).startswith("[{'executable': 'echo'"), option
    flags = {"dry_run", "strict", "lenient", "hold", "wait", "whole_node", "retry_of"}
    flags |= {"max_processors", "network"}  # they go with --min-processors and --container alone
    every = {each.name for group in SubmitOptions().groups() for each in fields(group)}
    names = {name.replace("_", "-") for name in every - flags}
    tried = {option.removeprefix("--") for option in SUBMIT_OPTIONS} - {"param"} | {"parameter"}
    assert names == tried


def test_a_file_that_is_no_program_is_not_planned_as_one(capsys: Captured, place: Path) -> None:
    (place / "notes.txt").write_text("x")
    assert "neither a file of descriptions nor a program" in refused(
        capsys, "submit", "--dry-run", "notes.txt"
    )
    (place / "j.toml").write_text('executable = "echo"\n')
    assert "notes.txt is no file of descriptions" in refused(
        capsys, "submit", "--dry-run", "j.toml", "notes.txt"
    )


def test_a_blank_line_of_a_list_is_refused_and_blank_lines_at_its_end_are_none(
    capsys: Captured, place: Path
) -> None:
    (place / "a.txt").write_text("x\n\ny\n")
    said = refused(capsys, "submit", "--dry-run", "--param", "a=@a.txt", "--", "echo", "{a}")
    assert "line 2 of a.txt is empty" in said
    (place / "a.txt").write_text("x\ny\n\n\n")
    assert planned(capsys, "--param", "a=@a.txt", "--", "echo", "{a}")["jobs"] == 2
    (place / "a.txt").write_bytes(b"\xef\xbb\xbfx\r\ny\r\n")
    commands = planned(capsys, "--param", "a=@a.txt", "--", "echo", "{a}")["first_commands"]
    assert commands == ["echo x", "echo y"]


def test_what_is_no_parameter_stays_in_its_braces_with_a_note(capsys: Captured) -> None:
    assert run(["submit", "--dry-run", "--param", "a=1,2", "--", "echo", "{b}", "{a}"]) == 0
    assert "{b} stays as it is: the parameters are a, n" in capsys.readouterr().err
    assert run(["submit", "--dry-run", "--", "awk", "{print}"]) == 0
    assert "stays as it is" not in capsys.readouterr().err


def test_a_plan_of_many_jobs_is_short(capsys: Captured) -> None:
    values = ",".join(map(str, range(2_000)))
    assert run(["submit", "--dry-run", "--param", f"a={values}", "--", "echo", "{a}"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) < 40
    assert "... and 1,997 more" in captured.out
    assert captured.err == "nothing was sent; this would submit 2,000 jobs in 1 message\n"


def test_descriptions_come_from_standard_input(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b'{"executable": "a"}\n{"executable": "b"}\n')

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert planned(capsys, "-")["jobs"] == 2


def test_every_command_has_help_with_examples(capsys: Captured) -> None:
    for _, name, where, _ in COMMANDS:
        module, _, function = where.partition(":")
        command = getattr(import_module(f"wms.cli.{module}"), function)
        below = [each for each in command if not each.startswith("-")] if isinstance(command, App) else []
        for words in ([name], *([name, each] for each in below)):
            assert run([*words, "--help"]) == 0
            said = capsys.readouterr().out
            assert said.count(f"wms {' '.join(words)}") > 1, words
            assert "For example:" in said or "Examples:" in said, words


def limit(kind: str, source: str, *, lifted: bool = False) -> LimitLine:
    found = Limit(kind=kind, attribute="owner", value="*", most=5)  # type: ignore[arg-type]
    return LimitLine(limit=found, source=source, lifted=lifted)


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    for _, name, where, summary in COMMANDS:
        module, _, function = where.partition(":")
        command = getattr(import_module(f"wms.cli.{module}"), function)
        said = command.help if isinstance(command, App) else inspect.getdoc(command) or ""
        if name not in ("demo", "replay"):
            assert said.splitlines()[0] == summary


def test_the_list_of_commands_is_there_without_importing_what_is_heavy() -> None:
    heavy = ["aiokafka", "asyncpg", "asyncio", "msgspec", "wms.client", "wms.cli.submit"]
    code = f"import sys; from wms.cli.__main__ import run; run(['--help']); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


NUMBERS_JUDGED_ELSEWHERE = {
    # The description's rules judge these, which is tried above.
    *(
        "submit --array",
        "submit --processors",
        "submit --priority",
        "submit --max-attempts",
        "submit --retries",
        "submit --final-exit-code",
    ),
    *("submit --success-exit-code", "submit --cpu-time", "submit --wall-time", "submit --memory"),
    *("submit --grace-time", "submit --gpus", "edit --gpus", "reschedule --gpus"),
    *("submit --max-memory", "submit --min-processors", "submit --max-processors"),
    *("submit --disk", "submit --stdout-limit", "submit --stderr-limit"),
    *(
        f"{command} --{option}"
        for command in ("edit", "reschedule")
        for option in (
            *("processors", "priority", "max-attempts", "retries", "cpu-time", "wall-time", "memory", "disk"),
            *("stdout-limit", "stderr-limit", "max-memory", "min-processors", "max-processors"),
        )
    ),
}


WORDS = {
    "logs": ["7"],
    "show": ["7"],
    "timeline": ["7"],
    "wait": ["7"],
    "why": ["7"],
    "simulate": ["t.swf"],
    "replay": ["t.swf"],
    **{f"site {each}": ["A"] for each in ("show", "unban", "test", "forget")},
    **{f"site {each}": ["A", "--reason", "r"] for each in ("ban", "drain")},
    "shares set": ["v/g"],
    "shares reset": ["v/g"],
    "reservations cancel": ["1-1-1-1"],
    "record": ["r.jsonl"],
    "token": ["create", "--owner", "a"],
    "login": ["https://iam.example.org"],
}


def numeric_options(name: str) -> list[tuple[str, str]]:
    """Return every option of a command, and of those below it, that takes a number, a time or a size."""
    command = app_for([name])[name]
    below = [each for each in command if not each.startswith("-")]
    ones = [(f"{name} {each}", command[each]) for each in below] or [(name, command)]
    return [
        (words, argument.names[0])
        for words, one in ones
        for argument in one.assemble_argument_collection()
        if re.search(r"\b(int|float)\b", str(argument.hint)) and argument.names[0].startswith("--")
    ]


@pytest.mark.parametrize("name", [name for _, name, _, _ in COMMANDS])
def test_no_number_out_of_its_bounds_is_taken_in_silence(capsys: Captured, name: str) -> None:
    for command, option in numeric_options(name):
        if f"{command} {option}" not in NUMBERS_JUDGED_ELSEWHERE:
            said = refused(capsys, *command.split(), *WORDS.get(command, []), f"{option}=-1")
            assert option in said, said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.sh", "#!/bin/bash\n", "-- bash a.sh"),
        ("a", "#!/usr/bin/env -S perl -w\n", "-- perl a"),
        ("a.py", "print()\n", "-- python3 a.py"),
        ("a.sh", "echo\n", "-- sh a.sh"),
    ],
)
def test_a_script_is_to_be_run_by_its_own_interpreter(
    name: str, text: str, said: str, place: Path, capsys: Captured
) -> None:
    (place / name).write_text(text)
    assert said in refused(capsys, "submit", name)


def test_a_file_that_cannot_be_parsed_is_named_with_its_line_alone(place: Path, capsys: Captured) -> None:
    (place / "bad.toml").write_text("a b")
    assert "  bad.toml (line 1): is not TOML" in refused(capsys, "submit", "bad.toml")


def test_what_is_another_users_is_no_fault_of_ours(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/client.toml")

    monkeypatch.setattr("wms.client.settings.read_settings", denied)
    said = refused(capsys, "status", code=3)
    assert "/data/client.toml: permission denied" in said
    assert "wms token client" in said
