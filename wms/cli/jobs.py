"""`wms jobs`, `wms status`, `wms wait`: the states of jobs."""

from typing import TYPE_CHECKING, Any, Literal

from wms.cli.job_table import TableView, listed, look, show_jobs
from wms.cli.options import (
    NO_CHOICE,
    USUAL,
    CommonOptions,
    Flag,
    Jobs,
    Many,
    Most,
    Patience,
    SelectionOptions,
)
from wms.cli.printing import note, show, show_json
from wms.cli.session import NOT_ALLOWED, OK, SOME_FAILED, with_client
from wms.cli.waiting import in_words, none_found, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.client import Client, Selector
    from wms.job.state import State
    from wms.messages.replies import JobLine, SweepLine

FEW = 20


def jobs(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    each: Flag = False,
    limit: Most = 50,
    oldest: Flag = False,
    sort: str = "",
    columns: Many | None = None,
    format: Literal["table", "ids", "json", "csv"] = "table",  # noqa: A002 - the option's name
    common: CommonOptions = USUAL,
) -> int:
    """List jobs, the newest first.

    These are your jobs, and jobs of others that you may see. Without a selection all are listed but deleted ones, and a sweep (an array, or lists of parameters) is one line with its jobs by state. With --json each line is a job or a sweep, as its `kind` says.

    For example:
      wms jobs
      wms jobs --state Failed --limit 0
      wms jobs 100-200 --name 'sim*'
      wms jobs --state live --site A --json
      wms jobs --group fits --since 2h
      wms jobs --columns id,name,state --sort=-since
      wms jobs --group fits --limit 0 --format csv > fits.csv
      wms reschedule $(wms jobs --state Failed --since 1d --limit 0 --format ids)

    Parameters
    ----------
    each
        Show a line for each job of a sweep.
    limit
        The greatest number of lines to show; 0 shows all.
    oldest
        Show the oldest first.
    sort
        Sort by this column: id, name, state, reason, site, tries, age, since, group, owner. --sort=-age reverses the order.
    columns
        Show these columns in this order: id,name,state; as CSV: job_id,exit_code,parameters.x. May be repeated.
    format
        table; ids: ids and ranges on one line, as other commands take them; json: the same as --json; csv: a line for each job with its parameters, exit code, times, CPU time and memory.
    """
    from dataclasses import replace as with_fields

    from msgspec.structs import replace

    from wms.job.state import State
    from wms.messages.replies import JobLine

    as_ids, as_csv = format == "ids", format == "csv"
    how = look([] if as_csv else columns or [], sort)
    common = with_fields(common, json=common.json or format == "json")

    whole = not (ids or chosen.state or chosen.site or chosen.name or chosen.submission or each or as_csv)
    states = [] if chosen.all else [state for state in State if state is not State.DELETED]
    selector = chosen.selector(ids, default_all=True)
    if states and not (ids or selector.states or selector.submission):
        selector = replace(selector, states=tuple(states), everything=False)
    most = limit if limit > 0 else None

    async def work(client: "Client") -> int:
        found: Sequence[JobLine | SweepLine]
        if whole:
            found = await _with_sweeps(client, selector, states, most, newest=not oldest)
            total = len(found) if most is None or len(found) < most else None
        elif common.json and not sort:
            # Printed as they arrive, since their number has no bound.
            async for job in client.jobs(selector, newest=not oldest, limit=most):
                show_json(_record(job))
            return OK
        else:
            rows = client.jobs(selector, newest=not oldest, limit=most, results=as_csv)
            found = [job async for job in rows]
            total = await _total(client, selector, found, most)
        if as_csv:
            show_results([job for job in found if isinstance(job, JobLine)], listed(columns or []))
        else:
            _show_all(found, how, common, as_ids=as_ids)
        if not common.json and total != len(found):
            note(f"{len(found):,} of {total or 'possibly more'} are shown; --limit 0 shows all")
        return OK

    return with_client(common, work)


async def newest_with_sweeps(client: "Client", state: str, most: int) -> "list[JobLine | SweepLine]":
    """Return the newest jobs in the states named `state` (such as `live`), at most `most` lines. A sweep (job array) is one line."""
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


async def _total(
    client: "Client", selector: "Selector", found: "Sequence[JobLine | SweepLine]", most: int | None
) -> int:
    """Return the number of selected jobs. `found` are those that were fetched, at most `most`; only if there are that many, the system is asked."""
    if most is None or len(found) < most:
        return len(found)
    return sum((await client.counts(selector)).values())


def _show_all(
    found: "Sequence[JobLine | SweepLine]", how: TableView, common: CommonOptions, *, as_ids: bool
) -> None:
    if common.json:
        for each in found:
            show_json(_record(each))
    elif as_ids:
        from wms.client.selector import in_words as ids_in_words
        from wms.ids import joined

        show(ids_in_words(joined((_place(each), _last(each)) for each in found)))
    else:
        show_jobs(found, how)


def show_results(jobs: "Sequence[JobLine]", chosen: "Sequence[str]") -> None:
    """Print a line for each job with the columns `chosen`, or with all if none is. Raise Rejected if there is no such column."""
    from wms.cli.csv_table import show_csv
    from wms.client.result_table import PARAMETER, result_row
    from wms.errors import Rejected, shown

    rows = [result_row(job) for job in jobs]
    known = list(dict.fromkeys(name for row in rows for name in row))
    for name in chosen:
        if known and name not in known and not name.startswith(PARAMETER):
            raise Rejected(
                "BAD_OPTION", f"as CSV jobs have no column {shown(name, 60)}", f"one of {', '.join(known)}"
            )
    columns = chosen or known
    show_csv(columns, ([row.get(name) for name in columns] for row in rows))


def _last(line: "JobLine | SweepLine") -> int:
    from wms.messages.replies import SweepLine

    return line.last if isinstance(line, SweepLine) else line.job_id


def _record(line: "JobLine | SweepLine") -> "dict[str, Any]":
    """Return a job or a sweep (job array) as an object for --json. Its first field `kind` says which it is."""
    from msgspec import to_builtins

    from wms.messages.replies import SweepLine

    return {"kind": "sweep" if isinstance(line, SweepLine) else "job", **to_builtins(line)}


def status(*ids: Jobs, chosen: SelectionOptions = NO_CHOICE, common: CommonOptions = USUAL) -> int:
    """Show the states of jobs, or the health of the system.

    With jobs, it shows how many are in each state. Without jobs, it shows each server and service with its lag and its health. The exit code is 1 if some of the jobs failed or were killed, or if a part of the system is down.

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


async def _status(client: "Client", selector: "Selector", common: CommonOptions) -> int:
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
    chosen: SelectionOptions = NO_CHOICE,
    within: Patience | None = None,
    common: CommonOptions = USUAL,
) -> int:
    """Wait until jobs have ended.

    A bar shows the progress. The exit code is 0 if all are Done, else 1. If all that are left start after a job that failed, it is told and the wait ends.

    For example:
      wms wait 100-200
      wms wait --name 'sim*' --within 1h
      wms wait --group fits

    Parameters
    ----------
    within
        Stop waiting after this time, with exit code 75; the jobs continue. (--timeout bounds each answer of the system.)
    """
    selector = chosen.selector(ids)
    return with_client(common, lambda client: wait_for(client, selector, common, limit=within))
