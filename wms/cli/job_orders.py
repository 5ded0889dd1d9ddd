"""`wms kill`, `hold`, `release`, `edit`, `reschedule`, `rm`: orders that change the states or requirements of jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from wms.cli.edit_options import NO_CHANGES, EditOptions, with_files
from wms.cli.options import NO_CHOICE, USUAL, CommonOptions, Flag, Jobs, SelectionOptions
from wms.cli.printing import jobs_of, note, show, show_json
from wms.cli.session import NOT_ALLOWED, OK, SOME_FAILED, with_client
from wms.cli.waiting import in_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from wms.client import Client, Selector
    from wms.messages.replies import Controlled, Unchanged

Action = Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
Reason = Annotated[str, Parameter(help="The reason, which goes into the history of each job.")]
Id = Annotated[
    str | None,
    Parameter(
        name="--id",
        help="An id of your choice for this order. With the same id, a repeated command takes effect once.",
    ),
]

NAMED = 10
"""How many jobs that an order left unchanged are printed one by one; with --json it is a hundred."""

DONE = {
    "kill": "killed or told to stop",
    "hold": "held",
    "stop_and_hold": "held or told to stop first",
    "release": "released",
    "reschedule": "rescheduled",
    "remove": "removed",
    "edit": "edited",
}


def kill(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    reason: Reason = "",
    order_id: Id = None,
    common: CommonOptions = USUAL,
) -> int:
    """Kill jobs.

    A running job is stopped by its pilot within a second or two.

    For example:
      wms kill 17
      wms kill 100-200,205 --reason 'wrong input'
      wms kill --name 'sim*' --state live
      wms kill --all
    """
    return _order("kill", ids, chosen, reason, order_id, common)


def hold(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    reason: Reason = "",
    running: Flag = False,
    order_id: Id = None,
    common: CommonOptions = USUAL,
) -> int:
    """Hold waiting jobs until they are released.

    For example:
      wms hold --name 'sim*' --reason 'calibration first'
      wms hold 100-200
      wms hold --group fits --running

    Parameters
    ----------
    running
        Also hold running jobs: their pilots stop them, and they begin anew after their release.
    """
    return _order("stop_and_hold" if running else "hold", ids, chosen, reason, order_id, common)


def release(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    reason: Reason = "",
    order_id: Id = None,
    common: CommonOptions = USUAL,
) -> int:
    """Release held jobs, so that they wait for a pilot again.

    For example:
      wms release --state Held
      wms release 100-200
    """
    return _order("release", ids, chosen, reason, order_id, common)


def edit(
    *ids: Jobs,
    changes: EditOptions = NO_CHANGES,
    chosen: SelectionOptions = NO_CHOICE,
    reason: Reason = "",
    order_id: Id = None,
    common: CommonOptions = USUAL,
) -> int:
    """Change the requirements of jobs that wait or are held.

    A waiting job moves to the task queue of its new requirements; a held job stays held. The program of a job cannot be changed; `wms submit --retry-of` makes new jobs. `wms reschedule` runs a failed job again with changes. One order edits at most 10,000 jobs of sweeps that were never with a pilot.

    For example:
      wms edit 17 --memory 4GiB
      wms edit 100-200 --to-site A --priority 8 --reason 'B is down until Monday'
      wms edit --group fits --state Held --unset site --input calibration.db
    """
    return _order("edit", ids, chosen, reason, order_id, common, changes)


def reschedule(
    *ids: Jobs,
    changes: EditOptions = NO_CHANGES,
    chosen: SelectionOptions = NO_CHOICE,
    reason: Reason = "",
    order_id: Id = None,
    common: CommonOptions = USUAL,
) -> int:
    """Run jobs again from the beginning, with changed requirements if some are given.

    The jobs may have failed. Without changes they may also be running; they are then stopped first.

    For example:
      wms reschedule --state Failed
      wms reschedule 17 --memory 4GiB
      wms reschedule --group fits --state Failed --wall-time 2h --input fixed/settings.ini
    """
    return _order("reschedule", ids, chosen, reason, order_id, common, changes)


def remove(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    reason: Reason = "",
    yes: Flag = False,
    order_id: Id = None,
    common: CommonOptions = USUAL,
) -> int:
    """Delete jobs.

    Jobs that have ended can be deleted, and with --yes those that wait or are held. A job that a pilot has must be killed first.

    For example:
      wms rm --state Done,Killed
      wms rm 100-200

    Parameters
    ----------
    yes
        Also delete jobs that have not begun: they will never run.
    """
    return _order("remove", ids, chosen, reason, order_id, common, check=None if yes else _check_ended)


async def _check_ended(client: "Client", selector: "Selector") -> None:
    """Raise Rejected if some of the selected jobs have not begun, and would be deleted."""
    from msgspec.structs import replace

    from wms.errors import Rejected
    from wms.job.state import ENDED, TRANSITIONS, Event

    states = [each for each, events in TRANSITIONS.items() if Event.REMOVE in events and each not in ENDED]
    chosen = tuple(each for each in states if not selector.states or each in selector.states)
    counts = await client.counts(replace(selector, states=chosen)) if chosen else {}
    if counts:
        raise Rejected(
            "NOT_ENDED", f"some of these jobs have not begun: {in_words(counts)}", "--yes deletes them, too"
        )


def _order(  # noqa: PLR0917 - one form for all verbs
    action: Action,
    ids: Sequence[str],
    chosen: SelectionOptions,
    reason: str,
    order_id: str | None,
    common: CommonOptions,
    changes: EditOptions = NO_CHANGES,
    check: "Callable[[Client, Selector], Awaitable[None]] | None" = None,
) -> int:
    selector = chosen.selector(ids)
    fields = _fields(action, changes)

    async def work(client: "Client") -> int:
        if check is not None:
            await check(client, selector)
        wanted = await with_files(client, changes, fields)
        done = await client.order(action, selector, reason, changes=wanted, id=order_id)
        return _tell(action, done, common)

    return with_client(common, work)


def _fields(action: Action, changes: EditOptions) -> dict[str, Any]:
    """Return the changed fields of a description by name, checked before any file is uploaded.

    Raise Rejected if a change is invalid, or if `edit` has no change.
    """
    from wms.cli.job_descriptions import by_flags
    from wms.errors import Rejected
    from wms.jobdesc.changes import read_changes
    from wms.jobdesc.problem import InvalidDescription

    if changes.is_empty():
        if action == "edit":
            raise Rejected(
                "NOTHING_TO_CHANGE", "nothing is to change", "say what: --memory 4GiB, --to-site A, ..."
            )
        return {}
    fields = changes.fields()
    try:
        return dict(read_changes(fields)) if fields else {}
    except InvalidDescription as invalid:
        raise by_flags(invalid) from None


def _tell(action: Action, done: "Controlled", common: CommonOptions) -> int:
    """Print the result of an order, and return the exit code: 0 only if jobs were changed and none was left unchanged."""
    if common.json:
        show_json(done)
    else:
        before = " before, by the same order" if done.repeated else ""
        show(f"{jobs_of(done.changed)} {DONE[action]}{before}")
    for line in _left(done):
        note(line)
    if done.changed or not done.unchanged_total:
        return OK if done.changed and not done.unchanged_total else SOME_FAILED
    return NOT_ALLOWED if all(map(_is_nobodys, done.unchanged)) else SOME_FAILED


def _left(done: "Controlled") -> "Iterator[str]":
    """Yield lines about jobs that an order left unchanged: one for each job if they are few, else a summary by state."""
    if done.unchanged_total <= NAMED:
        yield from (
            each.why if _is_whole(each) else f"job {each.job_id}: {each.why}" for each in done.unchanged
        )
        return
    states = in_words(done.unchanged_by_state)
    nobodys = done.unchanged_total - sum(done.unchanged_by_state.values())
    parts = [*([states] if states else []), *([f"{nobodys:,} of no job"] if nobodys else [])]
    yield f"{done.unchanged_total:,} left: {', '.join(parts)}"
    if done.unchanged:
        yield f"  such as {done.unchanged[0].why}"


def _is_whole(each: "Unchanged") -> bool:
    return _is_nobodys(each) or each.why.startswith("job ")


def _is_nobodys(each: "Unchanged") -> bool:
    return each.why.startswith("there is no job ")
