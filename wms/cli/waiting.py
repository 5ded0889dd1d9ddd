"""Waiting for jobs to end, with a progress bar on standard error and an exit code."""

import sys
from typing import TYPE_CHECKING

from wms.cli.options import CommonOptions
from wms.cli.printing import console, jobs_of, note, show, show_json
from wms.cli.session import OK, SOME_FAILED

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from wms.client import Client, Selector, Submission


STUCK_SHOWN = 3


async def wait_for(
    client: "Client",
    selector: "Selector",
    common: CommonOptions,
    *,
    submission: "Submission | None" = None,
    limit: float | None = None,
) -> int:
    """Wait for the selected jobs to end, print their numbers by state, and return the exit code.

    The code is 0 if all are Done, 1 if not. Raise Rejected if there are none. Jobs that wait for failed ones are not waited for. If the jobs were just submitted, `submission` is their
    submission. Raise Unavailable if they have not ended within `limit` seconds (None: no bound).
    """
    counts = await _counted_at_the_end(client, selector, limit)
    if common.json:
        said = {"id": submission.id, "ids": submission.ids} if submission else {}
        show_json({**said, "counts": counts})
    else:
        # After a submission, standard output has the ids alone, with and without --wait.
        (note if submission else show)(in_words(counts))
    missing = note_missing(selector, counts)
    await _note_ends(client, selector, counts)
    return OK if set(counts) == {"Done"} and not missing else SOME_FAILED


async def _counted_at_the_end(client: "Client", selector: "Selector", limit: float | None) -> dict[str, int]:
    import asyncio

    try:
        if not sys.stderr.isatty():
            return await client.wait(selector, timeout=limit)
        with _bar() as bar:
            task = bar.add_task("waiting", total=None, states="")
            return await client.wait(selector, lambda now: _move(bar, task, now), timeout=limit)
    except asyncio.CancelledError:
        words = selector_in_words(selector)
        note(f"wms: the jobs go on: `wms wait {words}` waits for them again, `wms kill {words}` ends them")
        raise


def selector_in_words(selector: "Selector") -> str:
    """Return the command-line arguments that select the same jobs."""
    import shlex

    from wms.client.selector import in_words as ids_in_words

    words = [ids_in_words(selector.ids)] if selector.ids else []
    named = {name: getattr(selector, name) for name in ("owner", "site", "name", "submission")}
    named["group"] = selector.job_group
    named["since"] = selector.changed_since and selector.changed_since.isoformat()
    for name, value in named.items():
        words += [f"--{name}", shlex.quote(value)] if value else []
    words += ["--state", ",".join(selector.states)] if selector.states else []
    return " ".join([*words, *(["--all"] if selector.everything else [])])


def none_found(selector: "Selector") -> str:
    """Return a text that says that no job is selected. It does not reveal whether an id is unknown or another user's."""
    from wms.client.selector import nothing_found

    return nothing_found(selector).message


def note_missing(selector: "Selector", counts: dict[str, int]) -> int:
    """Print how many of the selector's ids are of no job that the user may see, and return their number. `counts` are the jobs found."""
    named = sum(high - low + 1 for low, high in selector.ids)
    found = sum(counts.values())
    if selector == type(selector)(ids=selector.ids) and named > found:
        note(f"{named - found:,} of the {named:,} ids are of no job that you may see")
        return named - found
    return 0


async def _note_ends(client: "Client", selector: "Selector", counts: dict[str, int]) -> None:
    """Print why jobs failed, and how many jobs are Done although an output pattern matched no file. `counts` are jobs by state."""
    if counts.get("Held"):
        await _note_stuck(client, selector)
    reasons = await client.reasons(selector)
    if failed := reasons.get("Failed") if counts.get("Failed") else None:
        note(f"failed for: {in_words(failed)}")
    if missing := reasons.get("Done", {}).get("OUTPUT_MISSING"):
        note(f"{jobs_of(missing)} Done, but an --output pattern matched no file (OUTPUT_MISSING)")


async def _note_stuck(client: "Client", selector: "Selector") -> None:
    """Print what the jobs wait for that never end by themselves, for the first of them."""
    from msgspec.structs import replace

    from wms.job.state import State

    held = replace(selector, states=(State.HELD,))
    async for job in client.jobs(held, limit=STUCK_SHOWN):
        answer = await client.why(job.job_id)
        note(f"job {job.job_id} cannot start by itself: {answer.summary}")
        note(f"  {answer.advice}")


def in_words(counts: dict[str, int]) -> str:
    """Return numbers of jobs by state as a phrase: `990 Done, 10 Failed`."""
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
