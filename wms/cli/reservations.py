"""`wms reservations`: lists the reservations of CPUs for jobs, with reasons for denied offers, and cancels reservations."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from wms.cli.job_record import named_jobs
from wms.cli.options import USUAL, CommonOptions, Flag, Most
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import span, stamp
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.client import Client
    from wms.messages.replies import ReservationLine

RESERVATIONS = (
    TableColumn("ID", ALWAYS),
    TableColumn("JOB>", 1),
    TableColumn("OWNER", 7, "cut", 8),
    TableColumn("VO", 8, "cut", 8),
    TableColumn("ELEMENT", 2, "cut", 10),
    TableColumn("STATE", ALWAYS),
    TableColumn("CPUS>", 3),
    TableColumn("START", 1),
    TableColumn("FOR>", 4),
    TableColumn("NAME THERE", 6, "cut", 12),
    TableColumn("WHY", 5, "wrap", 20),
)
StateName = Literal[
    "Requested", "Temporary", "Confirmed", "Denied", "Cancelled", "Expired", "NoShow", "Ended"
]
AgreementIds = Annotated[tuple[str, ...], Parameter(help="The ids of reservations, as the list has them")]

reservations = App(
    name="reservations",
    help="""List or cancel the reservations of CPUs for jobs.

The broker asks several sites for a reservation of each job that wants one, confirms one and cancels the others. An unconfirmed one (Temporary) expires by itself; a confirmed one is over with its job, or when nobody uses it in time (NoShow). `wms hold` or `wms kill` of a job gives up what is reserved for it.

For example:
  wms reservations
  wms reservations 17 --ended
  wms reservations cancel 17-2-1-1

Each of list and cancel has --help with more examples.""",
)


@reservations.default
@reservations.command(name="list")
def list_reservations(
    *jobs: Annotated[str, Parameter(help="Ids and ranges of jobs; without one, all jobs that you may see")],
    state: Annotated[tuple[StateName, ...], Parameter(negative=(), show_default=False)] = (),
    ended: Flag = False,
    owner: str = "",
    site: str = "",
    ce: str = "",
    limit: Most = 50,
    common: CommonOptions = USUAL,
) -> int:
    """List the reservations of CPUs for jobs, the newest first.

    With --json each line is one object.

    For example:
      wms reservations list
      wms reservations list 17,20-25 --ended
      wms reservations --site CERN --state Confirmed
      wms reservations --state Denied --limit 20 --json

    Parameters
    ----------
    state
        Reservations in this state; may be repeated. Default: the states that have not ended: Requested, Temporary, Confirmed.
    ended
        Also reservations that have ended.
    owner
        Reservations for jobs of this owner.
    site
        Reservations at this site.
    ce
        Reservations on computing elements of this name.
    limit
        The greatest number of lines to show; 0 shows all.
    """

    async def work(client: "Client") -> int:
        from wms.agreement.state import AgreementState
        from wms.client.selector import select

        states = [AgreementState(each) for each in state] or (list(AgreementState) if ended else [])
        most = limit + 1 if limit else None
        named = await named_jobs(client, select(jobs)) if jobs else [None]
        found = [
            each
            for job in named
            async for each in client.reservations(
                job=job, owner=owner, site=site, ce=ce, states=states, limit=most
            )
        ]
        _show(found, limit, common)
        return OK

    return with_client(common, work)


@reservations.command(name="cancel")
def cancel(ids: AgreementIds, /, *, reason: str = "", common: CommonOptions = USUAL) -> int:
    """Cancel reservations: all that are named, or none if one of them cannot be.

    The jobs that wait for the reservations are placed anew, perhaps in another reservation; `wms hold` or `wms kill` a job to have nothing reserved for it. A reservation in which its job runs is not cancelled. The owner of the job, administrators of its VO and operators may cancel a reservation.

    For example:
      wms reservations cancel 17-2-1-1
      wms reservations cancel 17-2-1-1 18-2-1-1 --reason "the data are late"

    Parameters
    ----------
    reason
        The reason, which the owners and the site can read.
    """

    async def work(client: "Client") -> int:
        said = await client.cancel_reservations(ids, reason)
        show_json({"said": said}) if common.json else show(said)
        return OK

    return with_client(common, work)


def _show(found: "list[ReservationLine]", limit: int, common: CommonOptions) -> None:
    shown = found[:limit] if limit else found
    if common.json:
        for each in shown:
            show_json(each)
    else:
        show_table(RESERVATIONS, reservation_rows(shown), empty="nothing is reserved")
    if len(found) > len(shown):
        note(f"there are more than {limit:,}: --limit shows more, --limit 0 all")


def reservation_rows(lines: "Sequence[ReservationLine]") -> list[tuple[object, ...]]:
    """Return the table rows that show reservations."""
    return [
        (
            each.agreement_id,
            each.job_id,
            each.owner,
            each.vo,
            f"{each.site}/{each.ce}",
            each.state,
            each.cpus,
            stamp(each.start_at) if each.start_at else "-",
            span(each.duration_seconds),
            each.reservation or "-",
            why(each),
        )
        for each in lines
    ]


def why(each: "ReservationLine") -> str:
    """Return the reason for a reservation's state: its code, with its text if there is one; a dash if there is no reason."""
    return f"{each.reason}: {each.reason_text}" if each.reason_text else each.reason or "-"
