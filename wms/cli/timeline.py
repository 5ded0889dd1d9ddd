"""`wms timeline`: the events of a job in chronological order, each with its source: a service, a pilot, an element, the lease."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions
from wms.cli.printing import show_json, show_table
from wms.cli.quantities import stamp
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from wms.client import Client
    from wms.messages.replies import Attempt, HistoryLine, HolderLine, JobDetail

COLUMNS = (
    TableColumn("TIME", ALWAYS),
    TableColumn("ATTEMPT>", 2),
    TableColumn("WHO", 1, "wrap", 16),
    TableColumn("WHAT", 1, "wrap", 24),
)
SOURCES = {"job_manager": "job manager", "job_agent": "job agent"}


class Entry(NamedTuple):
    """An event of a job: its time, its attempt (0 for none), the source that reported it, and its text."""

    at: datetime
    attempt: int
    who: str
    what: str


def timeline(job: Annotated[int, Parameter(help="The job's id")], /, *, common: CommonOptions = USUAL) -> int:
    """Show the events of a job in the order of time, with their sources.

    It shows each change of state with its reason. For each attempt it shows the pilot and its place, its first and last report, the state that its computing element gave, and the end of the lease.

    For example:
      wms timeline 17
      wms timeline 17 --json
    """

    async def work(client: "Client") -> int:
        entries = told(await client.show(job))
        if common.json:
            for each in entries:
                show_json(each._asdict())
        else:
            show_table(COLUMNS, [_row(each) for each in entries])
        return OK

    return with_client(common, work)


def told(detail: "JobDetail") -> list[Entry]:
    """Return the events of a job in chronological order."""
    pilots = {each.pilot_id: each for each in detail.holders}
    found = [_move(each) for each in detail.history]
    first: dict[str, int] = {}
    for attempt in detail.attempts:
        found += _of_attempt(attempt)
        first.setdefault(attempt.pilot_id, attempt.epoch)
    for pilot_id, epoch in first.items():
        if pilot_id in pilots:
            found += _of_pilot(pilots[pilot_id], epoch)
    if detail.lease is not None:
        lease = detail.lease
        what = f"the lease of pilot {lease.pilot_id} ends, unless it is renewed"
        found.append(Entry(lease.expires_at, lease.epoch, "job manager", what))
    return sorted(found, key=lambda each: each.at)


def _move(line: "HistoryLine") -> Entry:
    why = f"{line.reason}: {line.text}" if line.text else line.reason
    return Entry(line.at, line.epoch, SOURCES.get(line.source, line.source), f"{line.state}  {why}")


def _of_attempt(attempt: "Attempt") -> Iterator[Entry]:
    who = f"pilot {attempt.pilot_id}"
    if attempt.accepted_at is not None:
        where = f"took the job under a lease at {attempt.site}/{attempt.ce}"
        yield Entry(attempt.accepted_at, attempt.epoch, who, where)
    if attempt.ended_at is not None:
        why = ": ".join(word for word in (attempt.reason, attempt.reason_text) if word)
        yield Entry(
            attempt.ended_at, attempt.epoch, "job manager", f"the attempt ended, {attempt.outcome}  {why}"
        )


def _of_pilot(pilot: "HolderLine", epoch: int) -> Iterator[Entry]:
    who, element = f"pilot {pilot.pilot_id}", f"{pilot.dispatcher} {pilot.site}/{pilot.ce}"
    called = f", there called {pilot.reference}" if pilot.reference else ""
    yield Entry(pilot.submitted_at, epoch, "pilot submitter", f"sent {who} to {element}{called}")
    if pilot.started_at is not None:
        yield Entry(pilot.started_at, epoch, who, "spoke for the first time")
    if pilot.seen_at is not None and pilot.seen_at != pilot.started_at:
        yield Entry(pilot.seen_at, epoch, who, "spoke last")
    if pilot.word is not None and pilot.word_at is not None:
        cause = f"  {pilot.cause}" if pilot.cause else ""
        yield Entry(pilot.word_at, epoch, element, f"said of {who}: {pilot.word}{cause}")
    if pilot.ended_at is not None and not pilot.cause:
        yield Entry(pilot.ended_at, epoch, who, "ended")


def _row(each: Entry) -> tuple[object, ...]:
    return (
        stamp(each.at, exactly=True),
        each.attempt or "",
        each.who,
        each.what,
    )
