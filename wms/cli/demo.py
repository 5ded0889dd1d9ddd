"""`wms demo`: a whole system from nothing, a real workload through it, its result checked, and what it all took."""

import asyncio
import resource
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wms.cli.options import Flag, Slots
from wms.cli.session import OK, SOME_FAILED, quiet, run_async

if TYPE_CHECKING:
    from wms.cli.figures import Phases
    from wms.cli.library_map import Unit
    from wms.cli.progress import ProgressBoard
    from wms.cli.token_count import Counts
    from wms.client import Client, Submission
    from wms.embedded.system import System

PATIENCE_SECONDS = 600.0
"""For all the jobs of one step."""
LOOK_SECONDS = 0.25
LOOKS_A_FAULT = 8
"""How many looks at the counts there are for one at the jobs themselves."""


def demo(
    *,
    data: Annotated[Path | None, Parameter(env_var=())] = None,
    slots: Slots = None,
    kafka: str = "embedded",
    json: Flag = False,
) -> int:
    """Start a whole system, run a real workload through it, verify the result, and stop it again.

    The workload counts the tokens of Python's standard library: a job a package, its sources in its input sandbox, and a job that merges what they found. The result is compared with the same count made here.

    Examples:
      wms demo
      wms demo --slots 4 --json

    Parameters
    ----------
    data
        An empty directory to keep the system in; otherwise it lives in a temporary one, kept only if something fails.
    slots
        How many jobs run at once; default: one for each core.
    kafka
        embedded, apache, or HOST:PORT of a broker that runs.
    json
        Print the summary as JSON on standard output, for programs.
    """
    from wms.cli.own_system import WentWrong

    try:
        summary = run_async(_demo(data, slots, kafka))
    except WentWrong as wrong:
        sys.stderr.write("".join(f"wms: {line}\n" for line in wrong.findings))
        return SOME_FAILED
    summary["cpu_seconds"] = _cpu_seconds()
    _show(summary, as_json=json)
    return OK


async def _demo(data: Path | None, slots: int | None, kafka: str) -> dict[str, Any]:
    from wms.cli.figures import Phases
    from wms.cli.own_system import own_system
    from wms.cli.printing import note
    from wms.cli.progress import ProgressBoard

    quiet()
    phases = Phases()
    with phases.phase("all"):
        note("starting Postgres, a broker and the services ...")
        began = asyncio.get_running_loop().time()
        async with own_system(data, slots=slots, kafka=kafka, log_level="warning") as system:
            phases.seconds["start"] = round(asyncio.get_running_loop().time() - began, 2)
            with ProgressBoard() as board:
                summary = await _work(system, board, phases)
            note("stopping ...")
            began = asyncio.get_running_loop().time()
        phases.seconds["stop"] = round(asyncio.get_running_loop().time() - began, 2)
    return {**summary, "seconds": phases.seconds}


async def _work(system: "System", board: "ProgressBoard", phases: "Phases") -> dict[str, Any]:
    """Run the workload; raise WentWrong for what did not come out."""
    from wms.cli import library_map
    from wms.client import Client
    from wms.runtime import clock

    began_at = clock.now()
    work = library_map.units()
    given_up = threading.Event()
    # Beside the jobs, in a thread: a core would be idle otherwise.
    computing = asyncio.create_task(asyncio.to_thread(library_map.compute, work, given_up.is_set))
    try:
        with tempfile.TemporaryDirectory(prefix="wms-outputs-") as outputs:
            async with Client.connect(system.layout.root) as client:
                logs = f"; the logs are {system.layout.root}/pilots/*/log and services/*/*.log"
                submitted = await _map_and_merge(client, work, Path(outputs), board, phases, logs=logs)
            with phases.phase("verify"):
                _verify(await computing, Path(outputs) / "merged")
    finally:
        given_up.set()
    assert system.facts is not None
    url = system.facts.postgres_url
    with phases.phase("audit"):
        audited = await _audit(url)
    return {**await _figures(url, submitted, began_at), "audit": audited}


async def _map_and_merge(
    client: "Client",
    work: "list[Unit]",
    outputs: Path,
    board: "ProgressBoard",
    phases: "Phases",
    *,
    logs: str,
) -> "list[Submission]":
    from wms.cli import library_map

    with phases.phase("submit"):
        mapped = await library_map.submit(client, work)
    with phases.phase("map"):
        await _ended(client, mapped, board, "count tokens", logs)
    with phases.phase("fetch"):
        fetching = board.task("fetch outputs", mapped.count)
        places = await library_map.fetch(client, list(mapped.job_ids()), outputs, fetching.step)
    with phases.phase("merge"):
        merged = await library_map.submit_merge(client, places)
        await _ended(client, merged, board, "merge", logs)
        await client.output(next(iter(merged.job_ids())), outputs / "merged")
    return [mapped, merged]


async def _ended(
    client: "Client", submitted: "Submission", board: "ProgressBoard", name: str, logs: str = ""
) -> None:
    """Wait for jobs, showing how they do; name the first that goes wrong; raise WentWrong if one is not Done."""
    from wms.cli.own_system import WentWrong
    from wms.cli.printing import note
    from wms.client import ENDED

    task = board.task(name, submitted.count)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    fault, looks = "", 0
    while True:
        counts = await client.counts(submitted.selector())
        task.counts(counts)
        if sum(number for state, number in counts.items() if state in ENDED) == submitted.count:
            break
        if asyncio.get_running_loop().time() > deadline:
            raise WentWrong(
                f"{name}: not all jobs ended within {PATIENCE_SECONDS:g} s: {counts}",
                *([fault] if fault else []),
            )
        looks += 1
        if not (fault or looks % LOOKS_A_FAULT) and (fault := await first_failure(client, submitted)):
            note(f"wms: {fault}{logs}")
        await asyncio.sleep(LOOK_SECONDS)
    if counts != {"Done": submitted.count}:
        raise WentWrong(f"{name}: not all jobs are Done: {counts}", *await _failures(client, submitted))


async def first_failure(client: "Client", submitted: "Submission") -> str:
    """Return the first of the jobs that failed, or that lost an attempt and waits again, with its reason; or an empty text."""
    from wms.job.state import State
    from wms.messages.commands import Selector

    wrong = (State.FAILED, State.HELD, State.KILLED, State.WAITING)
    selector = Selector(ids=submitted.selector().ids, states=wrong)
    async for job in client.jobs(selector):
        if job.state != State.WAITING or job.attempts:
            last = next(
                (each for each in (await client.show(job.job_id)).attempts[::-1] if each.outcome), None
            )
            why = f": {last.reason}: {last.reason_text}" if last else f": {job.reason}"
            return f"job {job.job_id} ({job.name}) is {job.state}{why}"
    return ""


async def _failures(client: "Client", submitted: "Submission") -> list[str]:
    wrong = [job async for job in client.jobs(submitted.selector()) if job.state != "Done"]
    return [
        f"job {job.job_id} ({job.name}): {(await client.why(job.job_id)).summary}; it printed: "
        f"{(await client.peek(job.job_id, 'stderr', limit=500)).text.strip()}"
        for job in wrong[:5]
    ]


def _verify(right: "Counts", merged: Path) -> None:
    from wms.cli import library_map
    from wms.cli.own_system import WentWrong

    if found := library_map.differences(library_map.read_merged(merged), right):
        raise WentWrong("the jobs' result is not the one computed here", *found)


async def _audit(url: str) -> str:
    """Have the auditor check the database; raise WentWrong for what it found."""
    from wms.audit import audit
    from wms.cli.own_system import WentWrong

    lines = (report := await audit(url)).text().splitlines()
    if not report.ok:
        raise WentWrong("the audit failed", *lines)
    return lines[-1]


async def _figures(url: str, submitted: "list[Submission]", began_at: Any) -> dict[str, Any]:
    from wms.cli.figures import matches_per_second, waits
    from wms.db import timeline
    from wms.db.database import Database

    db = await Database.connect(url, size=1, application="wms demo")
    try:
        async with db.transaction() as tx:
            jobs = await timeline.of_ranges(tx, [each for one in submitted for each in one.ids])
            sent, used = await timeline.pilots_since(tx, began_at)
    finally:
        await db.close()
    return {
        "jobs": len(jobs),
        "attempts": sum(job.attempts for job in jobs),
        "wait_seconds": waits(jobs),
        "matches_per_second": matches_per_second(jobs),
        "pilots_sent": sent,
        "pilots_used": used,
        "verified": True,
    }


def _cpu_seconds() -> float:
    """Return what this process and all that it waited for, and they for, used of the processors."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(each.ru_utime + each.ru_stime for each in used), 1)


def _show(summary: dict[str, Any], *, as_json: bool) -> None:
    from wms.cli.printing import show, show_json, show_table

    if as_json:
        show_json(summary)
        return
    wait, seconds = summary["wait_seconds"], summary["seconds"]
    rows = [
        ("result", "verified: equal to the count made here"),
        ("audit", summary["audit"]),
        ("jobs", summary["jobs"]),
        ("attempts", summary["attempts"]),
        ("wait, median", f"{wait.median:.2f} s"),
        ("wait, 95 %", f"{wait.p95:.2f} s"),
        ("matches", f"{summary['matches_per_second']:g} a second"),
        ("pilots", f"{summary['pilots_used']} used of {summary['pilots_sent']} sent"),
        *((f"time: {name}", f"{taken:.2f} s") for name, taken in seconds.items()),
        ("CPU time", f"{summary['cpu_seconds']:.1f} s"),
    ]
    show_table(("WHAT", "FIGURE"), rows)
    show("the result is right")
