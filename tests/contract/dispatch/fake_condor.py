"""A fake of HTCondor's tools, which cannot run here: `condor_submit`, `condor_q`, `condor_history` and `condor_rm`.

It knows as much of their languages as the dispatcher uses, and runs each job at once as a process of this machine, in a
scratch directory into which its files are copied, as HTCondor's file transfer does. The queue is a directory of ads.

    python fake_condor.py TOOL ARGUMENTS...     with FAKE_CONDOR in the environment naming the directory
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

IDLE, RUNNING, REMOVED, COMPLETED = 1, 2, 3, 4


def submit(queue: Path, text: str) -> int:
    commands: dict[str, str] = {}
    jobs = []
    for line in text.splitlines():
        if line.strip() == "queue":
            jobs.append(dict(commands))
        elif line.strip():
            name, _, value = line.partition(" = ")
            commands[name.strip()] = value.strip()
    if any(int(job.get("request_memory", "0")) > 1_000_000 for job in jobs):
        sys.stderr.write(
            "ERROR: Failed to commit job submission into the queue.\nERROR: no machine has so much memory\n"
        )
        return 1
    cluster = 1 + max((int(ad.name.partition(".")[0]) for ad in queue.glob("*.json")), default=0)
    for proc, job in enumerate(jobs):
        ad = {
            "ClusterId": cluster,
            "ProcId": proc,
            "JobStatus": IDLE,
            "WmsPilot": json.loads(job["+WmsPilot"]),
        }
        write(queue, ad)
        (queue / f"{cluster}.{proc}.job").write_text(json.dumps(job))
        subprocess.Popen(
            [sys.executable, __file__, "run", f"{cluster}.{proc}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    print(f"{cluster}.0 - {cluster}.{len(jobs) - 1}")
    return 0


def run(queue: Path, number: str) -> int:
    """Be one job's starter."""
    job, ad = json.loads((queue / f"{number}.job").read_text()), read(queue, number)
    with tempfile.TemporaryDirectory() as scratch, Path(job["output"]).open("ab") as out:
        for name in job["transfer_input_files"].split(", "):
            shutil.copy2(Path(job["initialdir"], name), scratch)
        process = subprocess.Popen(
            [job["executable"], *job["arguments"].split()], cwd=scratch, stdout=out, stderr=out,
            env={"PATH": os.environ["PATH"]}, start_new_session=True,
        )  # fmt: skip
        write(queue, {**ad, "JobStatus": RUNNING, "Process": process.pid})
        code = process.wait()
        for name in job.get("transfer_output_files", "").strip('"').split():
            shutil.copy2(Path(scratch, name), job["initialdir"])
    ended = {**read(queue, number), "ExitBySignal": code < 0, "ExitCode": max(code, 0), "ExitSignal": -code}
    write(queue, {**ended, "JobStatus": REMOVED if ended.get("Removing") else COMPLETED})
    return 0


def remove(queue: Path, numbers: list[str]) -> int:
    for number in numbers:
        ad = read(queue, number)
        if ad["JobStatus"] < REMOVED:
            write(queue, {**ad, "Removing": True, "RemoveReason": "via condor_rm"})
            # As a starter does it: the whole family of the job's.
            os.killpg(ad["Process"], signal.SIGTERM)
    return 0


def query(queue: Path, constraint: str, *, ended: bool) -> int:
    found = [json.loads(path.read_text()) for path in queue.glob("*.json")]
    found = [ad for ad in found if (ad["JobStatus"] in (REMOVED, COMPLETED)) == ended]
    if named := re.fullmatch(r"member\(WmsPilot, \{(.*)\}\)", constraint):
        found = [ad for ad in found if ad["WmsPilot"] in json.loads(f"[{named[1]}]")]
    if found:
        print(json.dumps(found))
    return 0


def read(queue: Path, number: str) -> dict[str, Any]:
    return json.loads((queue / f"{number}.json").read_text())  # type: ignore[no-any-return]


def write(queue: Path, ad: dict[str, Any]) -> None:
    path = queue / f"{ad['ClusterId']}.{ad['ProcId']}.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(ad))
    fresh.replace(path)


def main(tool: str, arguments: list[str]) -> int:
    queue = Path(os.environ["FAKE_CONDOR"])
    if "-name" in arguments and arguments[arguments.index("-name") + 1] == "away":
        sys.stderr.write("ERROR: Can't find address of schedd away\n")
        return 1
    match tool:
        case "condor_submit":
            return submit(queue, sys.stdin.read())
        case "condor_rm":
            return remove(queue, arguments)
        case "run":
            return run(queue, arguments[0])
    return query(queue, arguments[arguments.index("-constraint") + 1], ended=tool == "condor_history")


def install(place: Path) -> dict[str, str]:
    """Put the fake's tools into `place`; return the environment in which they are found before any others."""
    queue = place / "queue"
    queue.mkdir(parents=True, exist_ok=True)
    for tool in ("condor_submit", "condor_q", "condor_history", "condor_rm"):
        script = place / tool
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {tool} "$@"\n')
        script.chmod(0o755)
    return {"PATH": f"{place}:{os.environ['PATH']}", "FAKE_CONDOR": str(queue)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
