"""A fake of the tools of PBS (Torque) and of LSF, which no package brings here: `qsub`, `qstat`, `qdel`; `bsub`, `bjobs`, `bkill`.

It knows as much of their languages as the dispatchers use, and runs each job at once as processes of this machine. Like
the real ones it keeps what a job prints to itself until the job has ended. The queue is a directory of JSON.

    python fake_batch.py TOOL ARGUMENTS...     with FAKE_BATCH in the environment naming the directory
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PBS, LSF = ("qsub", "qstat", "qdel"), ("bsub", "bjobs", "bkill")
AWAY = {
    "q": "qsub: cannot connect to server away (errno=111) Connection refused",
    "b": "Failed in an LSF library call: LIM is down; try later",
}
ALONE = ("-rn", "-noheader", "-a", "-f", "-x")
"""Options without a value."""


def submit(queue: Path, options: dict[str, str], script: str) -> str:
    """Start a job; return its number."""
    number = str(1 + len(list(queue.glob("*.number"))))
    while True:
        try:
            (queue / f"{number}.number").touch(exist_ok=False)
            break
        except FileExistsError:
            number = str(int(number) + 1)
    (queue / f"{number}.sh").write_text(script)
    write(queue, number, {"options": options, "state": "waiting"})
    subprocess.Popen(
        [sys.executable, __file__, "run", number],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    return number


def run(queue: Path, number: str) -> None:
    """Be one job's starter."""
    job, spool = read(queue, number), queue / f"{number}.out"
    variables = dict(each.split("=", 1) for each in job["options"].get("-v", "").split(",") if each)
    with spool.open("wb") as out:
        process = subprocess.Popen(
            ["/bin/sh", str(queue / f"{number}.sh")], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={"PATH": os.environ["PATH"], **variables}, start_new_session=True,
        )  # fmt: skip
        write(queue, number, {**job, "state": "running", "process": process.pid})
        code = process.wait()
    with contextlib.suppress(OSError):
        shutil.copy(spool, job["options"]["-o"])
    killed = (queue / f"{number}.killed").exists()
    write(
        queue, number, {**job, "state": "ended", "code": 256 - code if code < 0 else code, "killed": killed}
    )


def kill(queue: Path, number: str) -> None:
    job = read(queue, number)
    if job["state"] != "ended":
        (queue / f"{number}.killed").touch()
        while "process" not in job:
            job = read(queue, number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job["process"], signal.SIGTERM)


def listed(queue: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in queue.glob("*.json"):
        yield path.stem, json.loads(path.read_text())


def qstat(queue: Path) -> None:
    """Print all jobs as Torque does: lines are cut after eighty characters, and go on after a tab."""
    owner = pwd.getpwuid(os.geteuid()).pw_name
    for number, job in listed(queue):
        said = {
            "Job_Name": job["options"]["-N"],
            "Job_Owner": f"{owner}@submit.example.org",
            "job_state": {"waiting": "Q", "running": "R", "ended": "C"}[job["state"]],
            "Variable_List": f"PBS_O_HOME=/home/{owner},PBS_O_LANG=C," + job["options"].get("-v", ""),
            **({"exit_status": str(job["code"])} if job["state"] == "ended" else {}),
        }
        print(f"Job Id: {number}.server.example.org")
        for name, value in said.items():
            text = f"    {name} = {value}"
            print("\n\t".join(text[first : first + 80] for first in range(0, len(text), 80)))
        print()


def bjobs(queue: Path) -> int:
    found = sorted(listed(queue))
    if not found:
        sys.stderr.write("No job found\n")
        return 255
    for number, job in found:
        status = {"waiting": "PEND", "running": "RUN", "ended": "EXIT" if job.get("code") else "DONE"}[
            job["state"]
        ]
        why = "TERM_OWNER: job killed by owner" if job.get("killed") and status == "EXIT" else "-"
        print(f"{number}|{status}|{job.get('code') or '-'}|{why}|{job['options']['-J']}")
    return 0


def read(queue: Path, number: str) -> dict[str, Any]:
    return json.loads((queue / f"{number}.json").read_text())  # type: ignore[no-any-return]


def write(queue: Path, number: str, job: dict[str, Any]) -> None:
    fresh = queue / f"{number}.{os.getpid()}.new"
    fresh.write_text(json.dumps(job))
    fresh.replace(queue / f"{number}.json")


def parsed(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    rest = iter(arguments)
    for each in rest:
        if not each.startswith("-"):
            return options, [each, *rest]
        options[each] = "" if each in ALONE else next(rest)
    return options, []


def main(tool: str, arguments: list[str]) -> int:
    queue = Path(os.environ["FAKE_BATCH"])
    if "away" in (os.environ.get("PBS_DEFAULT"), os.environ.get("LSF_ENVDIR")):
        sys.stderr.write(AWAY[tool[0]] + "\n")
        return 255
    if tool == "run":
        run(queue, arguments[0])
        return 0
    options, rest = parsed(arguments)
    if "1000000" in options.get("-l", "") + options.get("-R", ""):
        sys.stderr.write("Job violates the limits of the queue: so much memory\n")
        return 1
    match tool:
        case "qsub":
            print(f"{submit(queue, options, Path(rest[0]).read_text())}.server.example.org")
        case "bsub":
            print(f"Job <{submit(queue, options, sys.stdin.read())}> is submitted to default queue <normal>.")
        case "qstat":
            qstat(queue)
        case "bjobs":
            return bjobs(queue)
        case _:
            for number in arguments:
                kill(queue, number.partition(".")[0])
    return 0


def install(place: Path) -> dict[str, str]:
    """Put the fake's tools into `place`; return the environment in which they are found before any others."""
    queue = place / "queue"
    queue.mkdir(parents=True, exist_ok=True)
    for tool in (*PBS, *LSF):
        script = place / tool
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{__file__}" {tool} "$@"\n')
        script.chmod(0o755)
    return {"PATH": f"{place}:{os.environ['PATH']}", "FAKE_BATCH": str(queue)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
