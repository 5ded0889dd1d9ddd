"""`wms demo`: starts a whole system, runs a real workload on it, checks the result, and prints the figures."""

import asyncio
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wms.cli.options import Flag, Slots
from wms.cli.session import OK, SOME_FAILED, quiet

if TYPE_CHECKING:
    from wms.cli.progress import ProgressBoard
    from wms.demo.run import StepProgress, Tell


def demo(
    *,
    data: Annotated[Path | None, Parameter(env_var=())] = None,
    slots: Slots = None,
    kafka: str = "embedded",
    json: Flag = False,
) -> int:
    """Start a whole system, run a real workload through it, verify the result, and stop it again.

    Its pilots reach the services through the gateway alone, and each job sees its own files and processes alone where this machine allows it.

    The workload counts the tokens of Python's standard library. For each package, one job gets the package's sources in an input sandbox. A last job adds up the counts. The result is compared with a count made by this command.

    Examples:
      wms demo
      wms demo --slots 4 --json

    Parameters
    ----------
    data
        An empty directory for the system. Without it a temporary one is used, and kept only if something fails.
    slots
        The number of jobs that run at once; default: one for each core.
    kafka
        embedded, apache, or HOST:PORT of a running broker.
    json
        Print the summary as JSON on standard output, for programs.
    """
    from wms.cli.own_run import run_or_tell

    summary = run_or_tell(_demo(data, slots=slots, kafka=kafka))
    if summary is None:
        return SOME_FAILED
    summary["cpu_seconds"] = _cpu_seconds()
    _show(summary, as_json=json)
    return OK


async def _demo(data: Path | None, *, slots: int | None, kafka: str) -> dict[str, Any]:
    from msgspec.structs import asdict

    from wms.cli.own_run import audited
    from wms.cli.payload_isolation import isolation_here
    from wms.cli.printing import note
    from wms.cli.progress import ProgressBoard
    from wms.demo.phases import Phases
    from wms.demo.run import run
    from wms.embedded.own_system import own_system

    quiet()
    phases = Phases()
    with phases.phase("all"):
        note("starting Postgres, a broker and the services ...")
        began = time.monotonic()
        async with own_system(data, note, log_level="warning", slots=slots, kafka=kafka) as system:
            isolation = asyncio.create_task(asyncio.to_thread(isolation_here, system.isolation))
            phases.seconds["start"] = round(time.monotonic() - began, 2)
            assert system.facts is not None
            root, url = system.layout.root, system.facts.postgres_url
            here = await isolation
            note(f"pilots reach the services through the gateway alone; {here.text()}")
            with ProgressBoard() as board:
                figures = await run(
                    root, url, _on(board, f"{root}/pilots/*/log and services/*/*.log"), phases
                )
                with phases.phase("audit"):
                    verdict = await audited(url)
            note("stopping ...")
            began = time.monotonic()
        phases.seconds["stop"] = round(time.monotonic() - began, 2)
    return {
        **asdict(figures),
        "audit": verdict,
        "seconds": phases.seconds,
        "isolation": here.payloads or "namespaces",
        "pilots": here.pilots or "confined",
    }


def _on(board: "ProgressBoard", logs: str) -> "Tell":
    """Return a function that shows the progress of each step on a board. It prints errors together with `logs`, the path of the logs."""
    from wms.cli.printing import note

    tasks = {}

    def tell(progress: "StepProgress") -> None:
        if progress.step not in tasks:
            tasks[progress.step] = board.task(progress.step, progress.total)
        if progress.fault:
            note(f"wms: {progress.fault}; the logs are {logs}")
        elif progress.counts is not None:
            tasks[progress.step].counts(progress.counts)
        elif progress.done:
            tasks[progress.step].reach(progress.done)

    return tell


def _cpu_seconds() -> float:
    """Return how many seconds of CPU time this process and all its ended descendants have used."""
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
        ("isolation", summary["isolation"]),
        ("pilots", summary["pilots"]),
        *((f"time: {name}", f"{taken:.2f} s") for name, taken in seconds.items()),
        ("CPU time", f"{summary['cpu_seconds']:.1f} s"),
    ]
    show_table(("WHAT", "FIGURE"), rows)
    show("the result is right")
