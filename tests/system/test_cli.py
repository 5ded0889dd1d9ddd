"""The command line as its users run it, against a real job manager, broker and database."""

import asyncio
import contextlib
import csv
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.conftest import execute
from tests.system.place import Place, owner, place
from wms.cli.__main__ import run

__all__ = ["owner", "place"]


class Shell:
    """Runs `wms` as one user."""

    def __init__(self, place: Place, owner: str) -> None:
        self.data = place.root / f"data-{owner}"
        self.data.mkdir(exist_ok=True)
        (self.data / "client.toml").write_text(
            f'[kafka]\nbootstrap = "{place.broker.bootstrap}"\nfetch_wait_ms = 0\nidempotent = false\n'
            f'[auth]\ntoken_file = "{place.token(owner)}"\njwks = "{place.root}/keys/jwks.json"\n'
            f'[sandboxes]\nurl = "{place.root}/sandboxes"\n[postgres]\nurl = "{place.postgres}"\n'
        )
        self.out = self.err = ""

    def words(self, arguments: tuple[str, ...]) -> list[str]:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        return [*arguments[:end], "--data", str(self.data), *arguments[end:]]

    async def run(self, *arguments: str) -> int:
        """Run a command in a thread of this process, which is far quicker to start than a process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = await asyncio.to_thread(run, self.words(arguments))
        self.out, self.err = out.getvalue(), err.getvalue()
        assert "Traceback" not in self.err
        return code

    async def start(self, *arguments: str, stdin: str = "") -> int:
        """Run a command as the process that users start."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "wms.cli", *self.words(arguments)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        self.out, self.err = out.decode(), err.decode()
        assert process.returncode is not None
        return process.returncode

    async def json(self, *arguments: str) -> Any:
        assert await self.run(*arguments, "--json") == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def shell(place: Place, owner: str) -> Shell:
    return Shell(place, owner)


async def test_a_day_of_a_user(shell: Shell) -> None:
    assert await shell.run("submit", "--array", "3", "--id", "monday", "--name", "sim-{n}", "--", "true") == 0
    ids = shell.out.strip()
    first, last = map(int, ids.split("-"))
    assert await shell.run("submit", "--array", "3", "--id", "monday", "--name", "sim-{n}", "--", "true") == 0
    assert (shell.out.strip(), "had been submitted before" in shell.err) == (ids, True)

    assert await shell.start("submit", "-", "--json", stdin='{"executable": "a"}\n{"executable": "b"}\n') == 0
    assert json.loads(shell.out)["ids"] == [[last + 1, last + 2]]

    assert await shell.json("status", "--all") == {"counts": {"Waiting": 5}, "total": 5}
    assert await shell.run("jobs", "--name", "sim*", "--json", "--oldest") == 0
    assert [json.loads(line)["job_id"] for line in shell.out.splitlines()] == [first, first + 1, last]
    assert (await shell.json("why", str(first)))["code"] == "IMPOSSIBLE_NOW"
    assert (await shell.json("logs", str(first)))["job"]["state"] == "Waiting"
    assert sum(queue["waiting"] for queue in await shell.json("queues")) == 5
    assert await shell.json("sites") == []

    assert await shell.run("jobs") == 0
    assert [line.split()[0] for line in shell.out.splitlines()[1:]] == [str(last + 2), str(last + 1), ids]
    assert await shell.run("jobs", "--each", "--json") == 0
    assert len(shell.out.splitlines()) == 5

    assert await shell.run("hold", str(first)) == 0
    assert await shell.run("hold", str(first), ids) == 1
    assert f"job {first} is Held" in shell.err
    assert (await shell.json("release", "--state", "held"))["changed"] == 3
    assert await shell.run("kill", "--all", "--reason", "enough") == 0
    assert await shell.run("wait", "--all", "--json") == 1
    assert json.loads(shell.out) == {"counts": {"Killed": 5}}
    assert await shell.run("logs", str(first)) == 0
    assert "KILLED_BY_USER: enough" in shell.out
    assert await shell.run("output", str(first)) == 1
    assert "has no output sandbox" in shell.err
    assert await shell.run("rm", ids) == 0
    assert await shell.run("jobs") == 0
    assert len(shell.out.splitlines()) == 3


async def test_ids_are_on_standard_output_with_and_without_waiting(
    place: Place, shell: Shell, owner: str
) -> None:
    assert await shell.run("submit", "--hold", "--group", "fits", "--array", "2", "--", "true") == 0
    ids = shell.out.strip()
    assert (await shell.json("status", "--group", "fits"))["counts"] == {"Held": 2}
    waiter = Shell(place, owner)
    waiting = asyncio.create_task(waiter.start("submit", "--id", "w", "--wait", "--", "true"))
    while await shell.run("kill", "--submission", "w") != 0:
        assert "you made no submission with the id w" in shell.err
    assert await waiting == 1
    assert waiter.out.strip().isdigit()
    assert "1 Killed" in waiter.err
    assert await shell.run("kill", ids) == 0
    assert await shell.run("wait", f"{ids},{10**9}") == 1
    assert "1 of the 3 ids are of no job that you may see" in shell.err
    assert await shell.run("wait", "--group", "typo") == 3
    assert "there is no job that this selects" in shell.err
    assert await shell.run("jobs", "--group", "fits", "--format", "csv") == 0
    header, *rows = csv.reader(shell.out.splitlines())
    column = header.index("state")
    assert [row[column] for row in rows] == ["Killed", "Killed"]


@pytest.mark.parametrize("command", ["submit --wait -- true", "logs -f JOB"])
async def test_ctrl_c_says_that_the_jobs_go_on_and_what_to_do(shell: Shell, command: str) -> None:
    assert await shell.run("submit", "--hold", "--", "true") == 0
    words = tuple(command.replace("JOB", shell.out.strip()).split())
    process = await asyncio.create_subprocess_exec(
        # Who starts the tests in the background has them ignore it.
        *("env", "--default-signal=INT", sys.executable),
        *("-m", "wms.cli", *shell.words(words)),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert process.returncode == 130
    assert "go on" in err.decode() or "goes on" in err.decode()
    assert "`wms kill " in err.decode()


async def test_every_line_of_a_list_says_what_it_is_of(shell: Shell) -> None:
    assert await shell.run("submit", "--", "true") == 0
    assert await shell.run("submit", "--array", "2", "--group", "fits", "--", "true") == 0
    assert await shell.run("jobs", "--json") == 0
    assert [json.loads(line)["kind"] for line in shell.out.splitlines()] == ["sweep", "job"]
    assert await shell.run("jobs", "--group", "fits", "--since", "1h", "--json") == 0
    assert [json.loads(line)["job_group"] for line in shell.out.splitlines()] == ["fits"]


async def test_ids_of_a_list_are_what_other_commands_take(shell: Shell) -> None:
    assert await shell.run("submit", "--array", "4", "--", "true") == 0
    first = int(shell.out.split("-")[0])
    assert await shell.run("kill", f"{first},{first + 1},{first + 3}") == 0
    assert await shell.run("jobs", "--state", "Killed", "--format", "ids") == 0
    assert shell.out == f"{first}-{first + 1},{first + 3}\n"
    assert await shell.run("jobs", "--format", "ids") == 0
    assert shell.out == f"{first}-{first + 3}\n"
    assert await shell.run("jobs", "--each", "--columns", "state,id", "--sort", "state", "--limit", "2") == 0
    assert [line.split()[0] for line in shell.out.splitlines()] == ["STATE", "Killed", "Waiting"]
    assert "2 of 4 are shown" in shell.err


async def test_many_refusals_are_told_by_state(shell: Shell) -> None:
    assert await shell.run("submit", "--array", "20", "--", "true") == 0
    ids = shell.out.strip()
    assert await shell.run("kill", ids) == 0
    assert await shell.run("hold", ids) == 1
    assert "20 left: 20 Killed" in shell.err
    assert len(shell.err.splitlines()) == 2


async def test_what_is_not_there_and_what_is_anothers_are_told_alike(
    place: Place, shell: Shell, owner: str
) -> None:
    assert await shell.run("submit", "--", "true") == 0
    job = shell.out.strip()
    stranger = Shell(place, f"{owner}-stranger")
    for command in ("kill", "logs", "output", "wait"):
        assert await stranger.run(command, job) == 3, command
        mine = stranger.err
        await stranger.run(command, "987654321")
        assert stranger.err.replace("987654321", job) == mine
    assert await shell.json("status", job) == {"counts": {"Waiting": 1}, "total": 1}


async def test_an_expired_token_is_told_at_once(place: Place, shell: Shell, owner: str) -> None:
    place.token(owner, lifetime=-60.0)
    assert await shell.run("jobs") == 3
    assert "your token expired at" in shell.err
    assert (
        await shell.run("token", "create", "--owner", owner, "--to", str(place.root / f"{owner}.token")) == 0
    )
    assert (await shell.json("token"))["owner"] == owner
    assert await shell.run("jobs") == 0


async def test_files_go_along_with_a_program_that_is_here(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog").write_text("#!/bin/sh\n")
    (tmp_path / "prog").chmod(0o755)
    (tmp_path / "in.txt").write_text("x")
    assert await shell.run("submit", "--input", "in.txt", "--", "./prog") == 0
    job = await shell.json("logs", shell.out.strip())
    assert [ref["size"] > 0 for ref in job["description"]["input_sandbox"]] == [True]


async def test_operators_see_the_parts_and_check_them(shell: Shell) -> None:
    assert await shell.run("jobs") == 0, "the job manager answers"
    assert await shell.run("status") == 0
    assert "job_manager" in shell.out
    assert {part["name"] for part in (await shell.json("status"))["parts"]} == {
        "broker",
        "postgres",
        "job_manager",
    }
    (manager,) = [part for part in (await shell.json("status"))["parts"] if part["name"] == "job_manager"]
    assert {each["consumer"] for each in manager["partitions"]} == {
        "job_manager.commands",
        "job_manager.queries",
        "job_manager.reports",
    }
    assert len(manager["partitions"]) == 12
    assert await shell.run("migrate", "--check") == 0
    assert (await shell.json("migrate")) == {"applied": []}
    assert await shell.run("audit") == 0
    assert await shell.run("top", "--once") == 0
    assert "jobs now: " in shell.out
    assert (await shell.json("top"))["failures_last_hour"] == {}


LETTERS = """insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, payload, principal, error)
    select 'nobody', 'k', 't', 0, n, '{"type": "submit"}'::bytea, '{"owner": "ann"}', 'a fault' from generate_series(-2, -1) as n"""


async def test_operators_deal_with_dead_letters_by_their_numbers(
    place: Place, shell: Shell, owner: str
) -> None:
    await execute(place.postgres, LETTERS)
    try:
        assert await shell.run("dead-letters", "--consumer", "nobody", "--json") == 0
        two, one = (json.loads(line) for line in shell.out.splitlines())
        assert (two["type"], two["sender"], two["size"], two["state"]) == ("submit", "ann", 18, "dead")
        ids = one["dead_letter_id"], two["dead_letter_id"]
        assert await shell.run("dead-letters", "--consumer", "nobody", "--limit", "1") == 0
        assert f"--before {ids[1]}" in shell.err
        assert await shell.run("dead-letters", "show", str(ids[0])) == 0
        assert '"type": "submit"' in shell.out
        assert await shell.run("dead-letters", "replay") == 2
        assert (await shell.json("dead-letters", "replay", str(ids[0])))["letters"] == [ids[0]]
        assert await shell.run("dead-letters", "drop", f"{ids[0]}-{ids[1]}", "--reason", "a test") == 0
        assert await shell.run("dead-letters", "drop", str(ids[0]), "--reason", "a test") == 3
        assert f"no such letter: {ids[0]}" in shell.err
        assert await shell.run("dead-letters", "orders", "--json") == 0
        orders = [json.loads(line) for line in shell.out.splitlines()]
        assert [each["action"] for each in orders[:3]] == ["drop", "drop", "replay"]
        assert {each["operator"] for each in orders[:3]} == {owner}
        assert await shell.run("dead-letters", "blocked") == 0
        assert await shell.run("dead-letters", "skip", "nobody", "t/0", "3", "--reason", "x") == 2
        assert "reads no partition" in shell.err
    finally:
        await execute(place.postgres, "delete from dead_letter where consumer = 'nobody'")


async def test_nobody_answers(shell: Shell) -> None:
    toml = (shell.data / "client.toml").read_text().splitlines()
    (shell.data / "client.toml").write_text("\n".join(['[kafka]\nbootstrap = "127.0.0.1:9"', *toml[4:]]))
    assert await shell.run("jobs", "--timeout", "1", "--json") == 75
    assert json.loads(shell.out)["error"]["code"] == "UNAVAILABLE"


async def test_what_happened_to_a_job_is_told_with_who_saw_it(shell: Shell) -> None:
    assert await shell.run("submit", "--", "true") == 0
    job = shell.out.strip()
    assert await shell.run("kill", job, "--reason", "enough") == 0
    assert await shell.run("timeline", job) == 0
    lines = shell.out.splitlines()
    assert lines[0].split() == ["TIME", "ATTEMPT", "WHO", "WHAT"]
    assert " user " in lines[-1]
    assert lines[-1].endswith("Killed  KILLED_BY_USER: enough")
    assert await shell.run("timeline", job, "--json") == 0
    told = [json.loads(line) for line in shell.out.splitlines()]
    assert [each["at"] for each in told] == sorted(each["at"] for each in told)


async def test_a_pilot_is_shown_with_what_it_printed(place: Place, shell: Shell) -> None:
    assert await shell.run("pilots", "--output", "p-none") == 3
    assert "there is no pilot p-none" in shell.err
    connection = await asyncpg.connect(place.postgres)
    try:
        await connection.execute(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, state, ended_at, word, word_at, cause, output)"
            " values ('p-old', 'A', 'ce', $1, 'slurm', 1, 'Failed', now(), 'Failed: exit code 1', now(), 'PILOT_DIED', $2)",
            *("atlas", "my last words\n"),
        )
    finally:
        await connection.close()
    assert await shell.run("pilots", "--output", "p-old") == 0
    assert shell.out.endswith("my last words\n")
    assert "Failed: exit code 1 (PILOT_DIED)" in shell.err
    assert (await shell.json("pilots", "--output", "p-old"))["output"] == "my last words\n"


async def test_two_users_of_a_group_without_the_owners_secrets(
    shell: Shell, owner: str, place: Place
) -> None:
    """What `wms token client` makes is enough to work with, and holds nothing of the operator's."""
    given = {}
    for name in ("bob", "eve"):
        directory = shell.data / name
        words = ("--owner", f"{name}-{owner}", "--group", "physics", "--vo", "lhcb")
        assert await shell.run("token", "client", *words, "--to", str(directory)) == 0, shell.err
        assert (directory.stat().st_mode & 0o777, (directory / "client.toml").stat().st_mode & 0o777) == (
            0o700,
            0o600,
        )
        assert not {"postgres", "jwks", "keys"} & set(
            (directory / "client.toml").read_text().replace("/", " ").split()
        )
        given[name] = directory
    boss = ("--token", str(place.token(f"boss-{owner}", rights=("operator",))))
    assert await shell.run("shares", "set", "lhcb/physics", "--job-sharing", *boss) == 0, shell.err
    shell.data = given["bob"]
    assert await shell.run("submit", "--", "true") == 0, shell.err
    job_id = shell.out.strip()
    assert await shell.run("dead-letters") != 0
    assert "this is for operators" in shell.err
    assert await shell.run("pilot", "start", "--group-wide", "--count", "2") == 0, shell.err
    # Another of the group sees it; so does whoever has the token alone.
    shell.data = given["eve"]
    (ordered,) = await shell.json("pilot", "orders")
    assert (ordered["owner"], ordered["wanted"], ordered["state"]) == (f"bob-{owner}", 2, "open")
    assert await shell.run("pilot", "stop", str(ordered["order_id"])) == 0, shell.err
    assert await shell.run("pilot", "orders") == 0
    assert "withdrawn" in shell.out
    assert (await shell.json("jobs", job_id))["owner"] == f"bob-{owner}"
    assert await shell.run("token", "--token", str(given["bob"] / "user.token")) == 0
    assert f"bob-{owner}" in shell.out


async def test_a_token_that_others_may_read_is_refused(shell: Shell, tmp_path: Path) -> None:
    assert await shell.run("token", "create", "--owner", "ann", "--to", str(tmp_path / "token")) == 0
    (tmp_path / "token").chmod(0o644)
    assert await shell.run("jobs", "--token", str(tmp_path / "token")) == 3
    assert "others may read or change the token" in shell.err
    assert "chmod 600" in shell.err


async def test_an_operators_directory_is_not_overwritten(shell: Shell) -> None:
    before = (shell.data / "client.toml").read_text()
    assert await shell.run("token", "client", "--owner", "bob", "--to", str(shell.data)) == 2
    assert (shell.data / "client.toml").read_text() == before
