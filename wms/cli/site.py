"""`wms site`: how a site does and how it came so; ban, drain, unban, and test with a job."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, Common, Patience
from wms.cli.places import JOBS_THERE, PLANS, SITES, jobs_there_rows, plan_rows, site_rows
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.session import OK, SOME_FAILED, UNAVAILABLE, with_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.cli.table import Column
    from wms.client import Client
    from wms.messages.replies import CanaryLine, SiteDetail, SiteLine, SiteMove

HISTORY = ("WHEN", "ELEMENT", "FROM", "TO", "BY", "WHY")
CANARIES = ("JOB>", "ELEMENT", "SENT", "ASKED BY", "OUTCOME")
SHOWN = 20


def site(
    what: Annotated[
        Literal["show", "ban", "unban", "drain", "test", "forget"],
        Parameter(help="show, ban, unban, drain, test or forget"),
    ],
    name: Annotated[str, Parameter(help="The site.")],
    ce: Annotated[str, Parameter(help="One computing element of it; without it all.")] = "",
    /,
    *,
    reason: str = "",
    within: Annotated[Patience, Parameter(show_default=lambda _: "10m")] = 600,
    common: Common = USUAL,
) -> int:
    """Show a site, ban, drain or unban it, or test it with a job.

    A site that is banned or drained gets no pilots and no jobs; what runs there goes on to its end. Of a banned one pilots that have not
    begun are called back. Who did it, when and why is kept and shown.

    A test sends a canary to each computing element, a small job of the system's own, and follows it: exit code 0 if all came back well,
    1 if not, 75 if some had not come back in time. One that is quarantined is healthy again when its canary comes back.

    To forget an element removes its ad, whatever it says: it is as if it had never advertised itself. It comes back with its next ad; a ban stays.

    For example:
      wms site show CERN
      wms site ban CERN ce01 --reason 'GGUS 12345: jobs lose their files'
      wms site drain CERN --reason 'downtime from 14:00'
      wms site unban CERN
      wms site test CERN ce01
      wms site forget CERN ce01 --reason 'its ad is junk'

    Parameters
    ----------
    reason
        Why, for everybody to read. Needed to ban or drain.
    within
        How long to follow a test.
    """

    async def work(client: "Client") -> int:
        if what == "show":
            return _show(await client.site(name, ce), common)
        ruled = await client.rule_site(what, name, ce, reason)
        if what == "test":
            return await _follow(client, ruled.jobs, ruled.said, within, common)
        show_json({"said": ruled.said}) if common.json else show(ruled.said)
        return OK

    return with_client(common, work)


def _show(found: "SiteDetail", common: Common) -> int:
    if common.json:
        show_json(found)
        return OK
    show_table(SITES, site_rows(found.elements), empty="no computing element advertises itself")
    _table("jobs there, as its source counts them and as we do", JOBS_THERE, jobs_there_rows(found.elements))
    for each in found.elements:
        if each.reason:
            show(f"{each.ce}: {_in_words(each)}")
    _table("what was decided of it", HISTORY, map(_move, found.moves[:SHOWN]))
    _table("canaries", CANARIES, map(_canary, found.canaries[:SHOWN]))
    _table("pilots", PLANS, plan_rows(found.plans))
    return OK


def _in_words(each: "SiteLine") -> str:
    until = f" until {each.until:%Y-%m-%d %H:%M:%S} UTC" if each.until else ""
    return f"{each.state}{until}{f', by {each.said_by}' if each.said_by else ''}: {each.reason}"


def _table(title: str, columns: "Sequence[Column | str]", rows: Iterable[tuple[object, ...]]) -> None:
    if found := list(rows):
        show(f"\n{title}:")
        show_table(columns, found)


def _move(each: "SiteMove") -> tuple[object, ...]:
    when = f"{each.at:%Y-%m-%d %H:%M:%S}"
    return when, each.ce or "all", each.before, each.state, each.said_by, each.reason


def _canary(each: "CanaryLine") -> tuple[object, ...]:
    when = f"{each.sent_at:%Y-%m-%d %H:%M:%S}"
    return each.job_id, each.ce, when, each.asked_by or "the system", each.outcome or "out"


async def _follow(client: "Client", jobs: tuple[int, ...], said: str, within: float, common: Common) -> int:
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
