"""`wms reservations`: what is reserved for jobs, where and when, and why offers were denied."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, Common, Flag, Most, Within
from wms.cli.printing import note, show_json, show_table
from wms.cli.quantities import span
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

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
JobId = Annotated[int | None, Parameter(validator=Within(0, 2**62), show_default=False)]


def reservations(
    job: Annotated[JobId, Parameter(help="A job's id; without one, all jobs that you may see")] = None,
    /,
    *,
    state: Annotated[tuple[StateName, ...], Parameter(negative=(), show_default=False)] = (),
    ended: Flag = False,
    owner: str = "",
    site: str = "",
    ce: str = "",
    limit: Most = 50,
    common: Common = USUAL,
) -> int:
    """List the reservations of CPUs for jobs, the newest first.

    The broker asks several sites for a reservation of each job that wants one, confirms one and cancels the others. An unconfirmed one (Temporary) expires by itself; a confirmed one is over with its job, or when nobody uses it in time (NoShow). `wms hold` or `wms kill` of a job gives up what is reserved for it. With --json each line is one object.

    For example:
      wms reservations
      wms reservations 17 --ended
      wms reservations --site CERN --state Confirmed
      wms reservations --state Denied --limit 20 --json

    Parameters
    ----------
    state
        Those in this state; may be repeated. Without it, those that are alive: Requested, Temporary, Confirmed.
    ended
        Those that are over, too.
    owner
        Those for jobs of this owner.
    site
        Those at this site.
    ce
        Those on computing elements of this name.
    limit
        The most lines to show; 0 shows all.
    """

    async def work(client: "Client") -> int:
        from wms.agreement.state import AgreementState

        states = [AgreementState(each) for each in state] or (list(AgreementState) if ended else [])
        sought = client.reservations(
            job=job, owner=owner, site=site, ce=ce, states=states, limit=limit + 1 if limit else None
        )
        await _show(sought, limit, common)
        return OK

    return with_client(common, work)


async def _show(sought: "AsyncIterator[ReservationLine]", limit: int, common: Common) -> None:
    found = [each async for each in sought]
    shown = found[:limit] if limit else found
    if common.json:
        for each in shown:
            show_json(each)
    else:
        show_table(RESERVATIONS, reservation_rows(shown), empty="nothing is reserved")
    if len(found) > len(shown):
        note(f"there are more than {limit:,}: --limit shows more, --limit 0 all")


def reservation_rows(lines: "Sequence[ReservationLine]") -> list[tuple[object, ...]]:
    """Return the table rows of reservations."""
    return [
        (
            each.agreement_id,
            each.job_id,
            each.owner,
            each.vo,
            f"{each.site}/{each.ce}",
            each.state,
            each.cpus,
            f"{each.start_at:%m-%d %H:%M:%S}" if each.start_at else "-",
            span(each.duration_seconds),
            each.reservation or "-",
            why(each),
        )
        for each in lines
    ]


def why(each: "ReservationLine") -> str:
    """Return the reason for a reservation's state: its code, and its text if there is one."""
    return f"{each.reason}: {each.reason_text}" if each.reason_text else each.reason or "-"
