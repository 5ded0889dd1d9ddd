"""`wms shares`: what groups are entitled to, how they stand, and how that is changed while the system runs."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, Common
from wms.cli.printing import show, show_json, show_table
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, Column

if TYPE_CHECKING:
    from wms.client import Client
    from wms.messages.replies import ShareLine

SHARES = (
    Column("VO", ALWAYS),
    Column("GROUP", ALWAYS),
    Column("SHARE>", 1),
    Column("DIVIDED", 4),
    Column("BACKGROUND", 6),
    Column("FROM", 7, "cut", 8),
    Column("OWNERS>", 8),
    Column("WAITING>", 2),
    Column("RUNNING>", 2),
    Column("USED>", 5),
    Column("EFFECTIVE>", 3),
)

Switch = Annotated[bool | None, Parameter(show_default=False)]


def shares(
    what: Annotated[
        Literal["list", "set", "reset"], Parameter(help="list, set VO/GROUP, or reset VO/GROUP")
    ] = "list",
    group: str = "",
    share: float | None = None,
    *,
    job_sharing: Switch = None,
    background: Switch = None,
    common: Common = USUAL,
) -> int:
    """Show or set what groups are entitled to.

    Shares are relative to each other; a group of which nothing is said has 1000. What is set holds at once, in all matchers and after
    every restart, until it is reset to what the matchers' file says.

    Where usage counts (half_life_hours), USED are hours of processors, halved every half-life, and EFFECTIVE is what the share counts for.

    For example:
      wms shares
      wms shares set lhcb/production 2000 --job-sharing
      wms shares set lhcb/test --background
      wms shares reset lhcb/production

    Parameters
    ----------
    group
        VO/GROUP.
    share
        What the group is entitled to, relative to the others.
    job_sharing
        Its members' jobs count as one owner's; otherwise its share is divided by its owners.
    background
        It may have queues that run only where nothing else waits.
    """
    if what == "list":
        return with_client(common, lambda client: _list(client, common))
    named = _named(group)

    async def work(client: "Client") -> int:
        if what == "reset":
            said = await client.reset_share(*named)
        else:
            said = await client.set_share(*named, share, job_sharing=job_sharing, background=background)
        show_json({"said": said}) if common.json else show(said)
        return OK

    return with_client(common, work)


async def _list(client: "Client", common: Common) -> int:
    found = await client.shares()
    if common.json:
        show_json(found)
    else:
        show_table(SHARES, map(row, found), empty="no group has a share, a job or a rule")
    return OK


def row(each: "ShareLine") -> tuple[object, ...]:
    """Return the row of a table of shares."""
    return (
        each.vo,
        each.owner_group,
        f"{each.job_share:g}",
        "no" if each.job_sharing else "by owner",
        "yes" if each.background else "no",
        each.source + (f" by {each.said_by}" if each.said_by else ""),
        each.owners,
        f"{each.waiting_jobs:,}",
        f"{each.running_jobs:,}",
        f"{each.used_hours:,.1f} h" if each.used_hours else "-",
        f"{each.job_share if each.effective_share is None else each.effective_share:,.0f}",
    )


def _named(group: str) -> tuple[str, str]:
    from wms.errors import Rejected

    vo, slash, name = group.partition("/")
    if not (vo and slash and name):
        raise Rejected("BAD_GROUP", f"{group!r} names no group of a VO", "write VO/GROUP: lhcb/production")
    return vo, name
