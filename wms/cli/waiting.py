"""Waiting for jobs to end, with a bar on standard error and the outcome as an exit code."""

import sys
from typing import TYPE_CHECKING

from wms.cli.options import Common
from wms.cli.printing import console, note, show, show_json
from wms.cli.session import NOT_ALLOWED, OK, SOME_FAILED

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from wms.client import Client, Selector, Submission


async def wait_for(
    client: "Client",
    selector: "Selector",
    common: Common,
    *,
    submission: "Submission | None" = None,
    limit: float | None = None,
) -> int:
    """Wait for the selected jobs, and return 0 if all are Done, 1 if not, 3 if there are none."""
    if sys.stderr.isatty():
        with _bar() as bar:
            task = bar.add_task("waiting", total=None, states="")
            counts = await client.wait(selector, lambda now: _move(bar, task, now), timeout=limit)
    else:
        counts = await client.wait(selector, timeout=limit)
    if common.json:
        said = {"id": submission.id, "ids": submission.ids} if submission else {}
        show_json({**said, "counts": counts})
    elif counts:
        show(in_words(counts))
    if not counts:
        note("no such job of yours")
        return NOT_ALLOWED
    return OK if set(counts) == {"Done"} else SOME_FAILED


def in_words(counts: dict[str, int]) -> str:
    """Return the counts as a phrase: `990 Done, 10 Failed`."""
    return ", ".join(
        f"{count:,} {state}" for state, count in sorted(counts.items(), key=lambda each: -each[1])
    )


def _bar() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[states]}"),
        console=console(stderr=True),
        transient=True,
    )


def _move(bar: "Progress", task: "TaskID", counts: dict[str, int]) -> None:
    from wms.job.state import ENDED

    ended = sum(count for state, count in counts.items() if state in ENDED)
    bar.update(task, completed=ended, total=sum(counts.values()), states=in_words(counts))
