"""`wms why`: explains the state of a job, and lists changes of its requirements that would help."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import NO_CHOICE, USUAL, CommonOptions, Jobs, Most, SelectionOptions, WithinBounds
from wms.cli.payload_isolation import UNISOLATED, reported_words
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import span
from wms.cli.session import NOT_ALLOWED, OK, with_client
from wms.cli.table import ALWAYS, TableColumn
from wms.cli.waiting import none_found

if TYPE_CHECKING:
    from wms.client import Client, Selector
    from wms.messages.replies import CeVerdict, JobWhy

Elements = Annotated[int, Parameter(validator=WithinBounds(0, 200))]
COLUMNS = (
    TableColumn("SITE", ALWAYS),
    TableColumn("CE", ALWAYS),
    TableColumn("FITS", 1),
    TableColumn("PILOTS>", 2),
    TableColumn("FREE>", 3),
    TableColumn("RANK>", 4),
    TableColumn("WHY", 1, "wrap", 24),
)


def why(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    limit: Most = 20,
    elements: Elements = 8,
    common: CommonOptions = USUAL,
) -> int:
    """Explain the state of a job.

    For a waiting job it shows what keeps it (NEVER_POSSIBLE, IMPOSSIBLE_NOW, ALL_AVOIDED, HELD_BY_LIMIT, NO_PRIVATE_PILOT, NO_PILOT, SLOTS_BUSY, BEHIND_OTHERS or SOON); which requirement fails at how many computing elements; what the job could ask for instead, and how many slots that would open. The matcher's own functions judge all of it. With --json each line is one job, complete.

    For example:
      wms why 17
      wms why --state Held,Failed
      wms why 17 --elements 200
      wms why --state Waiting --limit 3 --json

    Parameters
    ----------
    limit
        How many jobs to explain at most.
    elements
        How many computing elements to show for each job at most, those with the fewest failed requirements first; 0 shows none.
    """
    selector = chosen.selector(ids)
    return with_client(common, lambda client: _why(client, selector, limit, elements, common))


async def _why(
    client: "Client", selector: "Selector", limit: int, elements: int, common: CommonOptions
) -> int:
    found = [job.job_id async for job in client.jobs(selector, limit=limit)]
    if not found:
        note(none_found(selector))
        return NOT_ALLOWED
    for job_id in found:
        answer = await client.why(job_id)
        if common.json:
            show_json(answer)
        else:
            _explain(answer, elements)
    if len(found) == limit:
        note(f"there may be more than these {limit}; --limit shows them")
    return OK


def _explain(answer: "JobWhy", elements: int) -> None:
    code = "" if answer.code in answer.summary else f" ({answer.code})"
    show(f"job {answer.job_id}: {answer.summary}{code}")
    if answer.advice:
        show(f"  {answer.advice}")
    for name, lines in (
        ("fails", _failing(answer)),
        ("instead", [each.text() for each in answer.relaxations]),
        ("place", _place(answer)),
        ("start", _start(answer)),
        ("isolation", [reported_words(answer.isolation)] if answer.isolation in UNISOLATED else []),
    ):
        for n, line in enumerate(lines):
            show(f"  {'' if n else name:<9} {line}")
    _show_elements(answer.elements[:elements], answer.elements_total)


def _failing(answer: "JobWhy") -> list[str]:
    said = [f"{clause} at {count:,}" for clause, count in answer.failing.items()]
    return [f"{', '.join(said)} of {answer.elements_total:,} computing elements"] if said else []


def _place(answer: "JobWhy") -> list[str]:
    others = "1 other job waits" if answer.ahead == 1 else f"{answer.ahead or 0:,} other jobs wait"
    said = [f"{others} in the same task queue"] if answer.ahead else []
    told = answer.forecast
    if told is None:
        return said
    if told.older_most:
        least = "" if told.older_least == told.older_most else f"{told.older_least:,} to "
        are = "is" if told.older_most == 1 else "are"
        said.append(f"{least}{told.older_most:,} of the jobs with its priority {are} older and go first")
    if told.level_chance < 1:
        said.append(f"{told.level_chance:.0%} of the jobs that its queue gives away have its priority")
    return said


def _start(answer: "JobWhy") -> list[str]:
    told = answer.forecast
    if told is None:
        return []
    if told.matched_per_minute is None or told.earliest_seconds is None:
        return ["unknown: no job of its task queue was matched lately"]
    latest = "an unknown time" if told.latest_seconds is None else span(told.latest_seconds)
    likely = "" if told.likely_seconds is None else f", likely {span(told.likely_seconds)}"
    rate = f"{told.matched_per_minute:,.3g} matches a minute"
    return [
        f"in {span(told.earliest_seconds)} to {latest}{likely} (in 80 of 100 cases; its task queue had {rate} lately)"
    ]


def _ways(at: "CeVerdict") -> list[str]:
    """Return texts on who decides which of the job's requirements at a computing element: its ad, its batch system, or its nodes."""
    named = (("by its ad", at.decided), ("asked for", at.forwarded), ("looked at on the node", at.on_node))
    return [f"{name}: {', '.join(terms)}" for name, terms in named if terms]


def _show_elements(shown: "tuple[CeVerdict, ...]", total: int) -> None:
    if not shown:
        return
    show_table(COLUMNS, rows(shown))
    if len(shown) < total:
        note(f"{len(shown):,} of {total:,} computing elements are shown; --elements shows more")


def rows(shown: "tuple[CeVerdict, ...]") -> list[tuple[object, ...]]:
    """Return the table rows that show computing elements, each with the verdict whether a job fits it."""
    return [
        (
            each.site,
            each.ce,
            "yes" if each.fits else "no",
            each.pilots,
            each.free_slots,
            "" if each.rank is None else f"{each.rank:g}",
            "; ".join(
                (
                    *(() if each.fresh else ("does not advertise now",)),
                    *each.clauses,
                    *each.limits,
                    *((each.avoid,) if each.avoid else ()),
                    *_ways(each),
                )
            ),
        )
        for each in shown
    ]
