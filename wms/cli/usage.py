"""`wms usage`: CPU time, wall time, memory and efficiency of jobs that ended, and how much was wasted for which reasons."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from wms.cli.options import USUAL, CommonOptions, Moment
from wms.cli.printing import show_json, show_table
from wms.cli.quantities import amount
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from wms.client import Client
    from wms.messages.replies import UsageLine

By = Literal["vo", "group", "owner", "site", "month", "day"]
MONTH_DAYS = 30
FIELDS = (
    "attempts", "done", "cpu_seconds", "wall_seconds", "slot_seconds", "efficiency", "mean_rss_bytes", "max_rss_bytes",
    "wasted_seconds",
)  # fmt: skip
NUMBERS = (
    TableColumn("JOBS>", 4),
    TableColumn("CPU h>", ALWAYS),
    TableColumn("WALL h>", ALWAYS),
    TableColumn("EFF>", 1),
    TableColumn("MEMORY>", 5),
    TableColumn("WASTE h>", 2),
    TableColumn("MOSTLY", 6, "cut", 10),
)


def usage(
    *,
    by: str = "vo",
    since: Moment | None = None,
    until: Moment | None = None,
    format: Literal["table", "csv"] = "table",  # noqa: A002 - the option's name
    common: CommonOptions = USUAL,
) -> int:
    """Show what the jobs used that you may see, by VO, group, owner, site, month or day.

    Only attempts that have ended count. CPU h is CPU time in hours, WALL h is elapsed time in hours multiplied by the requested processors, EFF is CPU h divided by WALL h. WASTE h is the part of WALL h in attempts that failed, MOSTLY the reason with the largest part of it. MEMORY is the mean of the jobs' largest memory. Hours are counted whole; months and days are those of UTC.

    For example:
      wms usage
      wms usage --by vo,owner --since 7d
      wms usage --by site,month --since 2026-01-01 --format csv
      wms usage --by owner --since 2026-11-01 --until 2026-12-01 --json

    Parameters
    ----------
    by
        Any of vo, group, owner, site, month and day, with commas between them.
    since
        From this time on: 7d (ago), 2026-11-22, or 2026-11-22T08:00; default: 30 days ago.
    until
        Up to this time; default: now.
    format
        csv prints comma-separated values, in seconds and bytes, for other programs.
    """
    names = columns(by)

    async def work(client: "Client") -> int:
        found = [each async for each in client.usage(names, since=since, until=until)]
        if common.json:
            show_json([record(names, each) for each in found])
        elif format == "csv":
            print_csv(names, found)
        else:
            head = [TableColumn(name.upper(), ALWAYS) for name in names]
            show_table([*head, *NUMBERS], map(row, found), empty="nothing has ended in this time")
        return OK

    return with_client(common, work)


def columns(by: str) -> tuple[By, ...]:
    """Return the names in a text such as `vo,owner`. Raise Rejected if a name is unknown or given twice, or if there is none."""
    from wms.errors import Rejected

    names = [each.strip() for each in by.split(",") if each.strip()]
    known: tuple[By, ...] = get_args(By)
    if strange := [each for each in names if each not in known]:
        raise Rejected("BAD_OPTION", f"there is no usage by {strange[0]!r}", f"by any of {', '.join(known)}")
    if len(set(names)) != len(names) or not names:
        raise Rejected("BAD_OPTION", "--by names nothing, or one thing twice", "--by vo,owner")
    return tuple(each for name in names for each in known if each == name)


def record(names: Sequence[str], line: "UsageLine") -> dict[str, object]:
    """Return a line of usage as an object for JSON, with the seconds wasted by reason. `names` are the properties it is summed up by."""
    values = {name: getattr(line, name) for name in FIELDS}
    return {
        **dict(zip(names, line.key, strict=True)),
        **values,
        "waste": {each.reason: each.slot_seconds for each in line.waste},
    }


def print_csv(names: Sequence[str], lines: Iterable["UsageLine"]) -> None:
    """Print lines of usage as comma-separated values under a line of headings. `names` are the properties they are summed up by."""
    from wms.cli.csv_table import show_csv

    show_csv([*names, *FIELDS], ((*each.key, *(getattr(each, name) for name in FIELDS)) for each in lines))


def row(line: "UsageLine") -> tuple[object, ...]:
    """Return the table row that shows a line of usage."""
    return (
        *line.key,
        f"{line.attempts:,}",
        hours(line.cpu_seconds),
        hours(line.slot_seconds),
        "-" if line.efficiency is None else f"{line.efficiency:.0%}",
        amount(line.mean_rss_bytes) if line.mean_rss_bytes else "-",
        hours(line.wasted_seconds),
        line.waste[0].reason if line.waste else "-",
    )


def hours(seconds: float) -> str:
    """Return a number of seconds as hours, with one digit after the decimal point."""
    return f"{seconds / 3_600:,.1f}"
