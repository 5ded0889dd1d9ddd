"""`wms sites`, `wms queues`, `wms pilots`: lists of computing elements, task queues and pilots."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wms.cli.discover import DiscoveryOptions, discover
from wms.cli.options import USUAL, CommonOptions, Flag
from wms.cli.payload_isolation import reported_words
from wms.cli.printing import note, show_json, show_output, show_table
from wms.cli.quantities import since, span, stamp
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn
from wms.site import PilotOwner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from wms.client import Client
    from wms.messages.replies import PilotDetail, PilotLine, PlanLine, QueueLine, SiteLine

NOWHERE = DiscoveryOptions()
SITES = (
    TableColumn("SITE", ALWAYS),
    TableColumn("CE", ALWAYS),
    TableColumn("KIND", 7),
    TableColumn("STATE", 1),
    TableColumn("SLOTS>", 2),
    TableColumn("PILOTS>", 3),
    TableColumn("RUNNING>", 2),
    TableColumn("JOBS THERE>", 4),
    TableColumn("TAGS", 8, "cut", 12),
    TableColumn("MAX CPU>", 6),
    TableColumn("ADVERTISED>", 5),
    TableColumn("NOTICE", 1, "wrap", 16),
)
JOBS_THERE = (
    TableColumn("CE", ALWAYS),
    TableColumn("SOURCE>", 1),
    TableColumn("SUBMITTING>", 4),
    TableColumn("PILOTS>", 3),
    TableColumn("NOT SEEN>", 5),
    TableColumn("IDLE>", 7),
    TableColumn("JOBS>", 2),
    TableColumn("MAX>", 1),
    TableColumn("MAX SUBMITTING>", 6),
    TableColumn("MORE PILOTS>", 1),
    TableColumn("MORE JOBS>", 2),
)
"""The columns of the table on jobs at computing elements.

They have the ad's count of jobs, our own count, the limits in the ad, and how many pilots and jobs may still be sent.
"""
QUEUES = (
    TableColumn("QUEUE>", ALWAYS),
    TableColumn("WAITING>", 1),
    TableColumn("OWNER", 1, "cut", 10),
    TableColumn("GROUP", 4, "cut", 10),
    TableColumn("VO", 5, "cut", 10),
    TableColumn("CPU>", 2),
    TableColumn("REQUIREMENTS", 1, "wrap", 20),
)
PLANS = (
    TableColumn("ELEMENT", ALWAYS),
    TableColumn("COMING>", 4),
    TableColumn("IDLE>", 6),
    TableColumn("ENDING>", 8),
    TableColumn("WORK", 1, "wrap", 16),
    TableColumn("WANTED>", 2),
    TableColumn("TAKEN>", 5),
    TableColumn("ELSEWHERE>", 7),
    TableColumn("SENT>", 1),
    TableColumn("HELD BY", 3, "cut", 10),
    TableColumn("WHY", 1, "wrap", 20),
)
PILOTS = (
    TableColumn("PILOT", ALWAYS),
    TableColumn("SITE", 2, "cut", 8),
    TableColumn("CE", 4, "cut", 8),
    TableColumn("VO", 7, "cut", 8),
    TableColumn("FOR", 5, "cut", 8),
    TableColumn("LINK", 9),
    TableColumn("STATE", 1),
    TableColumn("SLOTS>", 3),
    TableColumn("BUSY>", 2),
    TableColumn("DONE>", 5),
    TableColumn("SENT>", 8),
    TableColumn("SEEN>", 6),
    TableColumn("WHY", 1, "wrap", 24),
)


def sites(*, sought: DiscoveryOptions = NOWHERE, common: CommonOptions = USUAL) -> int:
    """List the computing elements that advertise themselves.

    JOBS THERE is the number of jobs by the element's own ad, other systems' jobs included, and the limit; PILOTS and RUNNING count our own.
    --discover asks index servers now, and lists the elements found through them.
    The notice says what keeps jobs and pilots from an element: suppress (a limit of its ad is reached, and nothing comes until the next ad), delay (more come later), avoid (it is quarantined or closed, or pilots die there).

    For example:
      wms sites
      wms sites --json
      wms sites --discover https://index.example.org/nordic.txt --for-vo lhcb
    """
    if sought.discover:
        return discover(sought, common)

    async def work(client: "Client") -> int:
        found = await client.sites()
        if common.json:
            show_json(found)
        else:
            show_table(SITES, site_rows(found), empty="no computing element has advertised itself")
        return OK

    return with_client(common, work)


def queues(*, common: CommonOptions = USUAL) -> int:
    """List the task queues.

    Waiting jobs with the same requirements share a task queue.

    For example:
      wms queues
    """

    async def work(client: "Client") -> int:
        found = await client.queues()
        if common.json:
            show_json(found)
        else:
            show_table(QUEUES, [queue_row(each) for each in found], empty="no job waits")
        return OK

    return with_client(common, work)


def pilots(
    *,
    ended: Flag = False,
    why: Flag = False,
    output: Annotated[str, Parameter(show_default=False)] = "",
    common: CommonOptions = USUAL,
) -> int:
    """List the pilots, explain how many are sent where, or show the output of one.

    FOR says whose jobs a pilot takes: those of its whole VO, or, for a private pilot, those of one owner or group. `wms pilot` orders private pilots. The output of a pilot is fetched from its computing element some seconds after its end.

    For example:
      wms pilots
      wms pilots --ended --json
      wms pilots --why
      wms pilots --output p-0123456789abcdef

    Parameters
    ----------
    ended
        Also list pilots that have ended.
    why
        Show the last decision on each computing element, by class of work: waiting jobs that could run there, jobs that pilots there take up, jobs that pilots elsewhere take up, pilots sent, and what held more back.
    output
        Show all about this pilot, with the end of its output.
    """

    async def work(client: "Client") -> int:
        if output:
            return await _show_pilot(client, output, common)
        if why:
            return await _show_plans(client, common)
        found = await client.pilots(ended=ended)
        if common.json:
            show_json(found)
        else:
            show_table(PILOTS, pilot_rows(found), empty="no pilots")
        return OK

    return with_client(common, work)


async def _show_plans(client: "Client", common: CommonOptions) -> int:
    plans = await client.plans()
    if common.json:
        show_json(plans)
    else:
        show_table(PLANS, plan_rows(plans), empty="nothing was planned: no element advertises itself")
    return OK


async def _show_pilot(client: "Client", pilot_id: str, common: CommonOptions) -> int:
    found = await client.pilot(pilot_id)
    if common.json:
        show_json(found)
        return OK
    show_table(PILOTS, pilot_rows([found.pilot]))
    for line in _known_of(found):
        note(line)
    if found.output is None:
        note(
            "what it printed was not fetched yet"
            if found.ended_at
            else "what it prints is fetched after its end"
        )
    else:
        show_output(found.output)
    return OK


def _known_of(found: "PilotDetail") -> "Iterator[str]":
    if found.reference:
        yield f"{found.dispatcher} calls it {found.reference}"
    if found.word_at is not None:
        cause = f" ({found.cause})" if found.cause else ""
        yield f"{found.dispatcher} said of it at {stamp(found.word_at)}: {found.word}{cause}"
    if found.isolation:
        yield f"isolation of payloads: {reported_words(found.isolation)}"
    if found.refused_orders:
        yield f"it refused {found.refused_orders:,} orders that no service signed: somebody forges them"
    if found.ended_at is not None:
        yield f"it ended at {stamp(found.ended_at)}"


def plan_rows(found: "Sequence[PlanLine]") -> list[tuple[object, ...]]:
    """Return the table rows that show the planner's decisions.

    A computing element has one row for each class of work, or one row with the reason why no pilot was sent.
    """
    rows: list[tuple[object, ...]] = []
    for line in found:
        each = line.decision
        there = (f"{each.site}/{each.ce}", each.submitted + each.waiting, each.idle_slots, each.ending)
        if not each.shares:
            rows.append((*there, "-", 0, 0, 0, 0, "-", "; ".join(each.reasons)))
        for share in each.shares:
            cores = "1 core" if share.processors == 1 else f"{share.processors} cores"
            work = f"VO {share.vo}, CPU class up to {span(share.cpu_segment)}, {cores}"
            numbers = (share.wanted, share.taken, share.elsewhere, share.sent)
            rows.append((*there, work, *numbers, share.held or "-", share.why))
    return rows


def _now() -> "datetime":
    from wms.runtime import clock

    return clock.now()


def site_rows(found: "tuple[SiteLine, ...]") -> list[tuple[object, ...]]:
    """Return the table rows that show computing elements, with numbers from their ads and our own counts."""
    now = _now()
    return [
        (
            each.site,
            each.ce,
            each.dispatcher,
            each.state if each.fresh or each.state != "healthy" else "stale",
            each.ad.get("slots", "-"),
            each.pilots,
            each.running_jobs,
            _there(each),
            ",".join(each.ad.get("tags", ())) or "-",
            span(each.ad.get("max_cpu_time", 0)),
            since(each.advertised_at, now) + ("" if each.fresh else " (stale)"),
            "; ".join(each.notices),
        )
        for each in found
    ]


def jobs_there_rows(found: "tuple[SiteLine, ...]") -> list[tuple[object, ...]]:
    """Return the table rows that show how many jobs are at computing elements, by their ads and by our own counts."""
    return [
        (
            *(each.ce, there.source, there.source_submitting),
            *(there.pilots, there.unseen, there.idle, there.jobs),
            *(each.ad.get(name) or "-" for name in ("max_jobs", "max_submitting_jobs")),
            *("-" if left is None else left for left in (there.pilots_left, there.jobs_left)),
        )
        for each in found
        if (there := each.jobs_there) is not None
    ]


def _there(each: "SiteLine") -> str:
    """Return how many jobs a computing element has by its own ad, with the limit if the ad has one, as text: `7 of 100`."""
    most = each.ad.get("max_jobs")
    counted = f"{each.ad.get('current_jobs', 0):,}"
    return f"{counted} of {most:,}" if most else counted


def queue_row(each: "QueueLine") -> tuple[object, ...]:
    """Return the table row that shows a task queue."""
    wanted = {name: value for name, value in each.requirements.items() if value not in (None, "", [], 0)}
    for said in ("owner", "owner_group", "vo", "cpu_segment", "setup"):
        wanted.pop(said, None)
    return (
        each.tq_id,
        f"{each.waiting:,}",
        each.owner,
        each.owner_group,
        each.vo,
        span(each.cpu_segment),
        " ".join(f"{name}={_short(value)}" for name, value in wanted.items()) or "-",
    )


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def pilot_rows(found: "Sequence[PilotLine]") -> list[tuple[object, ...]]:
    """Return the table rows that show pilots."""
    now = _now()
    return [
        (
            each.pilot_id,
            each.site,
            each.ce,
            each.vo,
            PilotOwner(each.owner_group, each.owner).text or "all",
            each.link,
            each.state,
            each.slots,
            each.busy,
            each.jobs_done,
            since(each.submitted_at, now),
            since(each.seen_at, now),
            each.reason,
        )
        for each in found
    ]
