"""Jobs as a table: the columns there are, the user's choice of columns, and the sorting of jobs."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec.structs import asdict

from wms.cli.printing import show_table
from wms.cli.quantities import since
from wms.cli.table import ALWAYS, TableColumn
from wms.cli.waiting import in_words
from wms.errors import Rejected, shown

if TYPE_CHECKING:
    from wms.messages.replies import JobLine, SweepLine

COLUMNS = (
    TableColumn("ID>", ALWAYS),
    TableColumn("NAME", 1, "cut", 10),
    TableColumn("STATE", 1, "wrap", 18),
    TableColumn("REASON", 2, "cut", 14),
    TableColumn("SITE", 4, "cut", 8),
    TableColumn("TRIES>", 8),
    TableColumn("AGE>", 5),
    TableColumn("SINCE>", 7),
    TableColumn("GROUP", 6, "cut", 8),
    TableColumn("OWNER", 3, "cut", 8),
)

Line: TypeAlias = "JobLine | SweepLine"


class TableView(NamedTuple):
    """The chosen columns of a table of jobs, and its sort order."""

    columns: tuple[str, ...] = ()
    """The names of the columns to show, in this order; empty for the usual columns."""
    sort: str = ""
    """The name of the column by which jobs are sorted. A `-` before the name reverses the order; empty: not sorted."""


USUAL_LOOK = TableView()


def listed(columns: Sequence[str]) -> list[str]:
    """Return the names in the values of an option that takes several, separated by commas: `id,name`."""
    return [part.strip() for word in columns for part in word.split(",") if part.strip()]


def look(columns: Sequence[str], sort: str) -> TableView:
    """Return a view with these columns and this sort order. Raise Rejected if there is no such column."""
    names = tuple(name.lower() for name in listed(columns))
    for name in (*names, *([sort.removeprefix("-").lower()] if sort else [])):
        if name not in _BY_NAME:
            raise Rejected(
                "BAD_OPTION", f"jobs have no column {shown(name, 60)}", f"one of {', '.join(_BY_NAME)}"
            )
    return TableView(names, sort.lower())


def show_jobs(found: Sequence[Line], how: TableView = USUAL_LOOK) -> None:
    """Print jobs as a table, with the columns and the order of `how`. A sweep (job array) is one line."""
    columns, rows = job_table(found, how)
    show_table(columns, rows, empty="no jobs")


def job_table(
    found: Sequence[Line], how: TableView = USUAL_LOOK
) -> tuple[list[TableColumn], list[list[object]]]:
    """Return the columns and rows of a table of jobs. Without chosen columns, GROUP is shown if a job has one, OWNER if there are several."""
    from wms.messages.replies import SweepLine
    from wms.runtime import clock

    now = clock.now()
    omitted = {name for name, needed in _sometimes(found).items() if not needed}
    chosen = [_BY_NAME[name] for name in how.columns]
    places = chosen or [n for n, each in enumerate(COLUMNS) if each.name not in omitted]
    rows = [
        (
            *(_of_sweep(each, now) if isinstance(each, SweepLine) else _of_job(each, now)),
            *(each.job_group, each.owner),
        )
        for each in _sorted(found, how.sort)
    ]
    # Requested columns are never left out.
    columns = [
        COLUMNS[n]._replace(priority=min(1, COLUMNS[n].priority)) if chosen else COLUMNS[n] for n in places
    ]
    return columns, [[row[n] for n in places] for row in rows]


_BY_NAME = {each.name.lower(): n for n, each in enumerate(COLUMNS)}
_FIELDS = {
    "id": ("job_id", "first"),
    "tries": ("attempts",),
    "age": ("submitted_at",),
    "since": ("changed_at", "submitted_at"),
    "group": ("job_group",),
}
"""The fields of a job, or of a sweep, that a column shows, for columns whose names differ from the fields'."""
_LATEST_FIRST = ("age", "since")
"""Columns that show the time elapsed since an event. The row with the latest event comes first."""


def _sorted(found: Sequence[Line], sort: str) -> list[Line]:
    name = sort.removeprefix("-")
    if not name:
        return list(found)
    downwards = sort.startswith("-") != (name in _LATEST_FIRST)
    return sorted(found, key=_key(name), reverse=downwards)


def _key(name: str) -> Callable[[Line], tuple[bool, Any]]:
    """Return the sort key of a column, by its name in lower case. Lines without a value come first."""

    def value(line: Line) -> tuple[bool, Any]:
        fields = asdict(line) | ({} if "state" in asdict(line) else {"state": in_words(line.counts)})  # type: ignore[union-attr]
        found = next((fields[each] for each in _FIELDS.get(name, (name,)) if each in fields), None)
        return (found is not None, found if found is not None else 0)

    return value


def _sometimes(found: Sequence[Line]) -> dict[str, bool]:
    """Return for GROUP and OWNER, the columns that are not always shown, whether these jobs need them."""
    return {
        "GROUP": any(each.job_group for each in found),
        "OWNER": len({each.owner for each in found}) > 1,
    }


def _of_job(job: "JobLine", now: datetime) -> tuple[object, ...]:
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


def _of_sweep(sweep: "SweepLine", now: datetime) -> tuple[object, ...]:
    ids = f"{sweep.first}-{sweep.last}" if sweep.last > sweep.first else sweep.first
    return (ids, sweep.name, in_words(sweep.counts), "", "-", "", since(sweep.submitted_at, now), "")
