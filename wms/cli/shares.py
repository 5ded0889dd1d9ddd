"""`wms shares`: lists the shares of groups and their use, and changes shares while the system runs."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from wms.cli.options import USUAL, CommonOptions, WithinBounds
from wms.cli.printing import show, show_json, show_table
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from wms.client import Client
    from wms.messages.replies import ShareLine

SHARES = (
    TableColumn("VO", ALWAYS),
    TableColumn("GROUP", ALWAYS),
    TableColumn("SHARE>", 1),
    TableColumn("SHARED", 4),
    TableColumn("BACKGROUND", 6),
    TableColumn("PRIVATE", 6),
    TableColumn("FROM", 7, "cut", 8),
    TableColumn("OWNERS>", 8),
    TableColumn("WAITING>", 2),
    TableColumn("RUNNING>", 2),
    TableColumn("USED>", 5),
    TableColumn("EFFECTIVE>", 3),
)

Group = Annotated[str, Parameter(help="VO/GROUP")]
Switch = Annotated[bool | None, Parameter(show_default=False)]

shares = App(
    name="shares",
    help="""Show or set the shares of groups.

Shares are relative to each other; the default is 1000. A share that is set holds at once in all matchers, also after restarts, until it is reset to that of the matchers' configuration.

For example:
  wms shares
  wms shares set lhcb/production 2000
  wms shares reset lhcb/production

Each of list, set and reset has --help with more examples.""",
)


@shares.default
@shares.command(name="list")
def show_shares(*, common: CommonOptions = USUAL) -> int:
    """List the shares of groups and their use.

    SHARED says whether a group's members share their jobs, PRIVATE whether private pilots are sent for them. If the configuration makes past use count (half_life_hours), USED is this use in processor hours, halved every half-life, and EFFECTIVE is the share corrected by it.

    For example:
      wms shares list
      wms shares list --json
    """
    return with_client(common, lambda client: _list(client, common))


@shares.command(name="set")
def set_share(
    group: Group,
    share: Annotated[float | None, Parameter(validator=WithinBounds(0, 1e9, "0 to 1e9"))] = None,
    /,
    *,
    job_sharing: Switch = None,
    background: Switch = None,
    private_pilots: Switch = None,
    common: CommonOptions = USUAL,
) -> int:
    """Set a group's share or its options; those that are not given stay as they are.

    For example:
      wms shares set lhcb/production 2000
      wms shares set lhcb/production --job-sharing
      wms shares set lhcb/test --background --private-pilots

    Parameters
    ----------
    share
        The share of the group, relative to other groups.
    job_sharing
        The group's members share their jobs: the jobs count as those of one owner, each member may act on all of them, and a private pilot of one member takes those of all. Without it the share is divided among the owners.
    background
        The group may have queues whose jobs start only if no others wait.
    private_pilots
        Send private pilots for the group's waiting jobs, which other pilots may take, too.
    """
    named = _named(group)

    async def work(client: "Client") -> int:
        return _tell(
            await client.set_share(
                *named, share, job_sharing=job_sharing, background=background, private_pilots=private_pilots
            ),
            common,
        )

    return with_client(common, work)


@shares.command(name="reset")
def reset_share(group: Group, /, *, common: CommonOptions = USUAL) -> int:
    """Remove the share that was set for a group, so that the matchers' configuration or the default holds again.

    For example:
      wms shares reset lhcb/production
      wms shares reset lhcb/test --json
    """
    named = _named(group)

    async def work(client: "Client") -> int:
        return _tell(await client.reset_share(*named), common)

    return with_client(common, work)


def _tell(said: str, common: CommonOptions) -> int:
    show_json({"said": said}) if common.json else show(said)
    return OK


async def _list(client: "Client", common: CommonOptions) -> int:
    found = await client.shares()
    if common.json:
        show_json(found)
    else:
        show_table(SHARES, map(row, found), empty="no group has a share, a job or a rule")
    return OK


def row(each: "ShareLine") -> tuple[object, ...]:
    """Return the table row that shows a group's share."""
    return (
        each.vo,
        each.owner_group,
        f"{each.job_share:g}",
        "yes" if each.job_sharing else "no",
        "yes" if each.background else "no",
        "yes" if each.private_pilots else "no",
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
