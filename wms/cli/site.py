"""`wms site`: shows the state and the history of a site, and bans, drains, unbans, tests or forgets it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from wms.cli.options import USUAL, CommonOptions, Patience
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import stamp
from wms.cli.session import OK, SOME_FAILED, UNAVAILABLE, with_client
from wms.cli.sites_queues_pilots import JOBS_THERE, PLANS, SITES, jobs_there_rows, plan_rows, site_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.cli.table import TableColumn
    from wms.client import Client
    from wms.messages.replies import CanaryLine, SiteDetail, SiteLine, SiteMove

HISTORY = ("WHEN", "ELEMENT", "FROM", "TO", "BY", "WHY")
CANARIES = ("JOB>", "ELEMENT", "SENT", "ASKED BY", "OUTCOME")
SHOWN = 20


Name = Annotated[str, Parameter(help="The site.")]
Element = Annotated[str, Parameter(help="A computing element of the site; without it all.")]
Reason = Annotated[str, Parameter(help="The reason, which everybody can read.")]

site = App(
    name="site",
    help="""Show a site; ban, drain, unban, test or forget it.

A banned or drained site gets no pilots and no jobs; running jobs go on to their end. A ban also cancels pilots that have not started. The command records who gave the order, when and why.

For example:
  wms site show CERN
  wms site ban CERN ce01 --reason 'GGUS 12345: jobs lose their files'
  wms site test CERN ce01

Each of show, ban, drain, unban, test and forget has --help with more examples.""",
)


@site.command(name="show")
def show_site(name: Name, ce: Element = "", /, *, common: CommonOptions = USUAL) -> int:
    """Show the state of a site, its history, its canaries, and the planner's decisions on it.

    For example:
      wms site show CERN
      wms site show CERN ce01 --json
    """

    async def work(client: "Client") -> int:
        return _show(await client.site(name, ce), common)

    return with_client(common, work)


@site.command(name="ban")
def ban(name: Name, ce: Element = "", /, *, reason: Reason, common: CommonOptions = USUAL) -> int:
    """Send no pilots and no jobs to a site, and cancel pilots that have not started.

    For example:
      wms site ban CERN --reason 'the storage is down'
      wms site ban CERN ce01 --reason 'GGUS 12345: jobs lose their files'
    """
    return _rule("ban", name, ce, reason, common)


@site.command(name="drain")
def drain(name: Name, ce: Element = "", /, *, reason: Reason, common: CommonOptions = USUAL) -> int:
    """Send no pilots and no jobs to a site; its present pilots run to their end.

    For example:
      wms site drain CERN --reason 'downtime from 14:00'
      wms site drain CERN ce01 --reason 'replaced on Monday'
    """
    return _rule("drain", name, ce, reason, common)


@site.command(name="unban")
def unban(name: Name, ce: Element = "", /, *, reason: Reason = "", common: CommonOptions = USUAL) -> int:
    """End the ban or the drain of a site.

    For example:
      wms site unban CERN
      wms site unban CERN ce01
    """
    return _rule("unban", name, ce, reason, common)


@site.command(name="test")
def try_site(
    name: Name,
    ce: Element = "",
    /,
    *,
    within: Annotated[Patience, Parameter(show_default=lambda _: "10m")] = 600,
    common: CommonOptions = USUAL,
) -> int:
    """Send a canary, a small job of the system's own, to each computing element of a site, and follow it.

    The exit code is 0 if all canaries succeed, 1 if one fails, 75 if one has not ended in time. A quarantined element becomes healthy when its canary succeeds.

    For example:
      wms site test CERN
      wms site test CERN ce01 --within 2m

    Parameters
    ----------
    within
        The longest time to follow the canaries.
    """

    async def work(client: "Client") -> int:
        ruled = await client.rule_site("test", name, ce, "")
        return await _follow(client, ruled.jobs, ruled.said, within, common)

    return with_client(common, work)


@site.command(name="forget")
def forget(name: Name, ce: Element = "", /, *, reason: Reason = "", common: CommonOptions = USUAL) -> int:
    """Remove the ad of an element, as if it had never advertised itself.

    The element is listed again after its next ad; a ban stays in force.

    For example:
      wms site forget CERN ce01 --reason 'its ad is junk'
      wms site forget CERN
    """
    return _rule("forget", name, ce, reason, common)


def _rule(
    action: Literal["ban", "unban", "drain", "forget"], name: str, ce: str, reason: str, common: CommonOptions
) -> int:
    async def work(client: "Client") -> int:
        ruled = await client.rule_site(action, name, ce, reason)
        show_json({"said": ruled.said}) if common.json else show(ruled.said)
        return OK

    return with_client(common, work)


def _show(found: "SiteDetail", common: CommonOptions) -> int:
    if common.json:
        show_json(found)
        return OK
    show_table(SITES, site_rows(found.elements), empty="no computing element advertises itself")
    _table("jobs there, as its source counts them and as we do", JOBS_THERE, jobs_there_rows(found.elements))
    for each in found.elements:
        for what, said in (
            ("entry point", each.entry_point),
            ("monitoring database", each.monitoring_database),
            ("stations", ", ".join(each.stations)),
        ):
            if said:
                show(f"{each.ce}: {what} {said}")
    for each in found.elements:
        show(f"{each.ce}: isolation of payloads: {_isolation(each)}")
        if each.reason:
            show(f"{each.ce}: {_in_words(each)}")
    _table("changes of its state", HISTORY, map(_move, found.moves[:SHOWN]))
    _table("canaries", CANARIES, map(_canary, found.canaries[:SHOWN]))
    _table("pilots", PLANS, plan_rows(found.plans))
    return OK


def _isolation(each: "SiteLine") -> str:
    from wms.cli.payload_isolation import reported_words

    return "; ".join(map(reported_words, each.isolation)) or "unknown, as no pilot is alive there"


def _in_words(each: "SiteLine") -> str:
    until = f" until {stamp(each.until)}" if each.until else ""
    return f"{each.state}{until}{f', by {each.said_by}' if each.said_by else ''}: {each.reason}"


def _table(title: str, columns: "Sequence[TableColumn | str]", rows: Iterable[tuple[object, ...]]) -> None:
    if found := list(rows):
        show(f"\n{title}:")
        show_table(columns, found)


def _move(each: "SiteMove") -> tuple[object, ...]:
    when = stamp(each.at)
    return when, each.ce or "all", each.before, each.state, each.said_by, each.reason


def _canary(each: "CanaryLine") -> tuple[object, ...]:
    when = stamp(each.sent_at)
    return each.job_id, each.ce, when, each.asked_by or "the system", each.outcome or "out"


async def _follow(
    client: "Client", jobs: tuple[int, ...], said: str, within: float, common: CommonOptions
) -> int:
    import asyncio

    from wms.cli.waiting import in_words
    from wms.client.selector import select
    from wms.errors import Unavailable

    note(said)
    chosen = select([str(job) for job in jobs])
    last = ""

    def progress(counts: dict[str, int]) -> None:
        nonlocal last
        now = in_words(counts)
        if now != last:
            note(now)
        last = now

    try:
        counts = await client.wait(chosen, progress, timeout=within)
    except asyncio.CancelledError:
        note(f"wms: the canaries go on: `wms wait {','.join(map(str, jobs))}` waits for them again")
        raise
    except Unavailable:
        note(f"not all came back within {within:g} s; `wms why {jobs[0]}` tells more")
        counts = await client.counts(chosen)
        show_json({"jobs": jobs, "counts": counts}) if common.json else show(in_words(counts))
        return UNAVAILABLE
    well = set(counts) == {"Done"}
    if common.json:
        show_json({"jobs": jobs, "counts": counts})
    else:
        show(
            "all canaries came back well" if well else f"{in_words(counts)}: `wms logs {jobs[0]}` tells more"
        )
    return OK if well else SOME_FAILED
