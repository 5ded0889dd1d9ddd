"""`wms jobs`, `wms status`, `wms wait`: where jobs are."""

from typing import TYPE_CHECKING, Any

from wms.cli.options import NO_CHOICE, USUAL, Chosen, Common, Flag, Jobs, Most, Patience
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import since
from wms.cli.session import NOT_ALLOWED, OK, SOME_FAILED, with_client
from wms.cli.table import ALWAYS, Column
from wms.cli.waiting import in_words, none_found, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from wms.client import Client, Selector
    from wms.job.state import State
    from wms.messages.replies import JobLine, SweepLine

COLUMNS = (
    Column("ID>", ALWAYS),
    Column("NAME", 1, "cut", 10),
    Column("STATE", 1, "wrap", 18),
    Column("REASON", 2, "cut", 14),
    Column("SITE", 4, "cut", 8),
    Column("TRIES>", 8),
    Column("AGE>", 5),
    Column("SINCE>", 7),
    Column("GROUP", 6, "cut", 8),
    Column("OWNER", 3, "cut", 8),
)
FEW = 20


def jobs(
    *ids: Jobs,
    chosen: Chosen = NO_CHOICE,
    each: Flag = False,
    limit: Most = 50,
    oldest: Flag = False,
    common: Common = USUAL,
) -> int:
    """List jobs, the newest first.

    They are yours, and those that your group's rights let you see. Without a selection, all that are not deleted, a sweep (an array, or lists of parameters) being one line with its jobs by state. With --json one job or sweep a line, its `kind` being job or sweep.

    For example:
      wms jobs
      wms jobs --state Failed --limit 0
      wms jobs 100-200 --name 'sim*'
      wms jobs --state live --site A --json
      wms jobs --group fits --since 2h

    Parameters
    ----------
    each
        A line for each job of a sweep, too.
    limit
        At most so many; 0: all.
    oldest
        The oldest first.
    """
    from msgspec.structs import replace

    from wms.job.state import State

    whole = not (ids or chosen.state or chosen.site or chosen.name or chosen.submission or each)
    states = [] if chosen.all else [state for state in State if state is not State.DELETED]
    selector = chosen.selector(ids, default_all=True)
    if states and not (ids or selector.states or selector.submission):
        selector = replace(selector, states=tuple(states), everything=False)
    most = limit if limit > 0 else None

    async def work(client: "Client") -> int:
        if whole:
            found = await _with_sweeps(client, selector, states, most, newest=not oldest)
            _show_with_sweeps(found, most, common)
            return OK
        return await _list(client, selector, most, newest=not oldest, common=common)

    return with_client(common, work)


async def newest_with_sweeps(client: "Client", state: str, most: int) -> "list[JobLine | SweepLine]":
    """Return the newest jobs in such states, a sweep as one line."""
    from wms.client.selector import select

    selector = select(state=state)
    return await _with_sweeps(client, selector, selector.states, most, newest=True)


async def _with_sweeps(
    client: "Client", selector: "Selector", states: "Sequence[State]", most: int | None, *, newest: bool
) -> "list[JobLine | SweepLine]":
    found: list[JobLine | SweepLine] = []
    async for job in client.jobs(selector, newest=newest, limit=most, alone=True):
        found.append(job)  # noqa: PERF401 - of two kinds, which a comprehension would forget
    sweeps = client.sweeps(
        owner=selector.owner,
        group=selector.job_group,
        since=selector.changed_since,
        states=states,
        newest=newest,
        limit=most,
    )
    async for sweep in sweeps:
        found.append(sweep)  # noqa: PERF401
    return sorted(found, key=_place, reverse=newest)[:most]


def _place(line: "JobLine | SweepLine") -> int:
    from wms.messages.replies import SweepLine

    return line.first if isinstance(line, SweepLine) else line.job_id


def _show_with_sweeps(found: "list[JobLine | SweepLine]", most: int | None, common: Common) -> None:
    if common.json:
        for each in found:
            show_json(_record(each))
        return
    show_jobs(found)
    if len(found) == most:
        note(f"there may be more than these {most:,}; --limit 0 shows all")


def _record(line: "JobLine | SweepLine") -> "dict[str, Any]":
    """Return a line of --json: what it is of stands first."""
    from msgspec import to_builtins

    from wms.messages.replies import SweepLine

    return {"kind": "sweep" if isinstance(line, SweepLine) else "job", **to_builtins(line)}


async def _list(
    client: "Client", selector: "Selector", most: int | None, *, newest: bool, common: Common
) -> int:
    if common.json:
        async for job in client.jobs(selector, newest=newest, limit=most):
            show_json(_record(job))
        return OK
    found = [job async for job in client.jobs(selector, newest=newest, limit=most)]
    show_jobs(found)
    if most is not None and len(found) == most:
        total = sum((await client.counts(selector)).values())
        if total > most:
            note(f"{most:,} of {total:,} jobs are shown; --limit 0 shows all")
    return OK


def show_jobs(found: "Sequence[JobLine | SweepLine]") -> None:
    """Print jobs as a table, a sweep as one line."""
    columns, rows = job_table(found)
    show_table(columns, rows, empty="no jobs")


def job_table(
    found: "Sequence[JobLine | SweepLine]",
) -> "tuple[list[Column], list[list[object]]]":
    """Return the columns and rows of jobs; their groups and owners where there are several."""
    from wms.messages.replies import SweepLine
    from wms.runtime import clock

    now = clock.now()
    omitted = {name for name, needed in _sometimes(found).items() if not needed}
    shown = [n for n, each in enumerate(COLUMNS) if each.name not in omitted]
    rows = [
        (
            *(_of_sweep(each, now) if isinstance(each, SweepLine) else _of_job(each, now)),
            *(each.job_group, each.owner),
        )
        for each in found
    ]
    return [COLUMNS[n] for n in shown], [[row[n] for n in shown] for row in rows]


def _sometimes(found: "Sequence[JobLine | SweepLine]") -> dict[str, bool]:
    """Return of the columns that are not always worth their room whether they are now."""
    return {
        "GROUP": any(each.job_group for each in found),
        "OWNER": len({each.owner for each in found}) > 1,
    }


def _of_job(job: "JobLine", now: "datetime") -> tuple[object, ...]:
    return (
        job.job_id,
        job.name,
        job.state,
        job.reason,
        job.site or "-",
        job.attempts,
        since(job.submitted_at, now),
        since(job.changed_at, now),
    )


def _of_sweep(sweep: "SweepLine", now: "datetime") -> tuple[object, ...]:
    ids = f"{sweep.first}-{sweep.last}" if sweep.last > sweep.first else sweep.first
    return (ids, sweep.name, in_words(sweep.counts), "", "-", "", since(sweep.submitted_at, now), "")


def status(*ids: Jobs, chosen: Chosen = NO_CHOICE, common: Common = USUAL) -> int:
    """Show how jobs do, or how the system does.

    Of jobs: how many are in each state. Without any: each server and service, its lag and its health. Exit code 1 when some of the jobs failed or were killed, or when a part of the system is down.

    For example:
      wms status
      wms status 100-200
      wms status --name 'sim*' --json
    """
    if not ids and chosen == NO_CHOICE:
        from wms.cli.health import show_health

        return show_health(common)
    selector = chosen.selector(ids)
    return with_client(common, lambda client: _status(client, selector, common))


async def _status(client: "Client", selector: "Selector", common: Common) -> int:
    counts = await client.counts(selector)
    bad = SOME_FAILED if {"Failed", "Killed"} & set(counts) else OK
    if common.json:
        show_json({"counts": counts, "total": sum(counts.values())})
    elif counts:
        show(in_words(counts))
        if sum(counts.values()) <= FEW:
            show_jobs([job async for job in client.jobs(selector)])
    if not counts:
        note(none_found(selector))
        return NOT_ALLOWED
    return bad


def wait(
    *ids: Jobs,
    chosen: Chosen = NO_CHOICE,
    within: Patience | None = None,
    common: Common = USUAL,
) -> int:
    """Wait until jobs have ended.

    A bar shows how far they are. Exit code 0 when all are Done, else 1.

    For example:
      wms wait 100-200
      wms wait --name 'sim*' --within 1h
      wms wait --group fits

    Parameters
    ----------
    within
        Give up when they have not ended after this time, with exit code 75; the jobs go on. (--timeout is for each answer of the system.)
    """
    selector = chosen.selector(ids)
    return with_client(common, lambda client: wait_for(client, selector, common, limit=within))
