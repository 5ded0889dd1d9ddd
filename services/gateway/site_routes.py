"""Routes of sites, task queues, pilots, orders of private pilots, reservations of CPUs, and the planner's decisions.

The planner decides how many pilots are sent to each computing element.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from services.gateway.job_routes import PageSize, Words
from services.gateway.route import Requester, Route
from wms.agreement.state import AgreementState
from wms.bounds import JobNumber, Name, PilotName, Reason
from wms.errors import Rejected
from wms.ids import AgreementId, CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of a list: where it begins, and the most entries to return."""

    after: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    """The number of list entries to skip. The answer's `after` is the value for the next page."""
    limit: PageSize = asked.PAGE_LIMIT


class PilotPage(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of the list of pilots."""

    ended: bool = False
    """Whether to list also pilots that have ended, after all others."""


class OneSite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of requests about one site; with `ce`, about that computing element of it."""

    site: Name
    ce: Name = ""


class OnePilot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameter in the path of requests about one pilot: its id."""

    pilot_id: PilotName


class ReservationList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of reservations, the newest first."""

    job: JobNumber | None = None
    owner: Name = ""
    site: Name = ""
    ce: Name = ""
    state: Words = ""
    """States of reservations, separated by commas. Empty: the states in which CPUs are reserved or may become so."""
    after_time: datetime | None = None
    """With `after_id`, where the page begins: the `at` of the previous answer's `after`. None: the first page."""
    after_id: Name = ""
    limit: PageSize = 100


class SiteOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an operator's order on a site, or on its computing element `ce`: the action and the reason."""

    action: Literal["ban", "unban", "drain", "test", "forget"]
    ce: Name = ""
    reason: Reason = ""


class PilotsOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an order of `count` private pilots, which run only your jobs, or with `group_wide` those of your group.

    Pilots that were not sent within `within_seconds` are cancelled.
    """

    count: Annotated[int, msgspec.Meta(ge=1, le=ordered.ORDERED_AT_ONCE)] = 1
    site: Name = ""
    ce: Name = ""
    group_wide: bool = False
    within_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 3_600.0


class ReservationsToCancel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a cancellation: the ids of reservations in which no job runs yet, and the reason. All are cancelled, or none."""

    agreements: Annotated[tuple[AgreementId, ...], msgspec.Meta(min_length=1, max_length=100)]
    reason: Reason = ""


class OrderToDrop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameter in the path: the number of the order of private pilots to withdraw."""

    order: JobNumber


def paged(kind: type[asked.PagedQuery], sender: Requester, given: Page) -> asked.PagedQuery:
    """Return a query of the type `kind` for the page that `given` describes, with the request's id and the client's id."""
    return kind(query_id=sender.id, client=sender.client, after=given.after, limit=given.limit)


def _list_pilots(sender: Requester, given: PilotPage) -> asked.ListPilots:
    return asked.ListPilots(
        query_id=sender.id, client=sender.client, after=given.after, limit=given.limit, ended=given.ended
    )


def _list_reservations(sender: Requester, given: ReservationList) -> asked.ListReservations:
    return asked.ListReservations(
        query_id=sender.id,
        client=sender.client,
        job_id=given.job,
        owner=given.owner,
        site=given.site,
        ce=given.ce,
        states=tuple(map(_agreement_state, filter(None, given.state.split(",")))),
        after=_cursor(given),
        limit=given.limit,
    )


def _agreement_state(name: str) -> AgreementState:
    known = {each.lower(): each for each in AgreementState}
    found = known.get(name.strip().lower())
    if found is None:
        raise Rejected(
            "BAD_SELECTOR", "there is no such state of a reservation", f"one of {', '.join(known)}"
        )
    return found


def _cursor(given: ReservationList) -> asked.ReservationCursor | None:
    if given.after_time is None:
        return None
    return asked.ReservationCursor(at=given.after_time, agreement_id=given.after_id)


def _rule_site(sender: Requester, given: OneSite, order: SiteOrder) -> ordered.RuleSite:
    return ordered.RuleSite(
        command_id=CommandId(sender.id),
        action=order.action,
        site=given.site,
        ce=order.ce or given.ce,
        reason=order.reason,
        client=sender.client,
    )


def _start_pilots(sender: Requester, _: msgspec.Struct, order: PilotsOrder) -> ordered.StartPilots:
    return ordered.StartPilots(
        command_id=CommandId(sender.id), client=sender.client, **msgspec.structs.asdict(order)
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/queues",
        summary="The task queues with waiting jobs, the fullest first",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListQueues, sender, given),
        answer=replies.Queues,
    ),
    Route(
        method="GET",
        path="/sites",
        summary="The computing elements that advertise themselves",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListSites, sender, given),
        answer=replies.Sites,
    ),
    Route(
        method="GET",
        path="/sites/{site}",
        summary="A site, or one of its elements: state, history, canaries, plans",
        parameters=OneSite,
        message=lambda sender, given: asked.ShowSite(
            query_id=sender.id, client=sender.client, site=given.site, ce=given.ce
        ),
        answer=replies.SiteDetail,
    ),
    Route(
        method="POST",
        path="/sites/{site}/orders",
        summary="Ban, unban, drain, test or forget a site (operators)",
        parameters=OneSite,
        body=SiteOrder,
        message=_rule_site,
        answer=replies.Ruled,
    ),
    Route(
        method="GET",
        path="/plans",
        summary="The planner's last decision on each element, with its reasons",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListPlans, sender, given),
        answer=replies.Plans,
    ),
    Route(
        method="GET",
        path="/pilots",
        summary="The living pilots, with `ended` the ended ones too",
        parameters=PilotPage,
        message=_list_pilots,
        answer=replies.Pilots,
    ),
    Route(
        method="GET",
        path="/pilots/{pilot_id}",
        summary="One pilot in full, with its output if that was fetched",
        parameters=OnePilot,
        message=lambda sender, given: asked.ShowPilot(
            query_id=sender.id, client=sender.client, pilot_id=given.pilot_id
        ),
        answer=replies.PilotDetail,
    ),
    Route(
        method="GET",
        path="/pilot-orders",
        summary="Your orders of private pilots, the newest first",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListPilotOrders, sender, given),
        answer=replies.PilotOrders,
    ),
    Route(
        method="POST",
        path="/pilot-orders",
        summary="Order private pilots",
        body=PilotsOrder,
        message=_start_pilots,
        answer=replies.Ruled,
    ),
    Route(
        method="DELETE",
        path="/pilot-orders/{order}",
        summary="Withdraw an order: its pilots that were not sent are cancelled",
        parameters=OrderToDrop,
        message=lambda sender, given: ordered.StopPilots(
            command_id=CommandId(sender.id), orders=(given.order,), client=sender.client
        ),
        answer=replies.Ruled,
    ),
    Route(
        method="GET",
        path="/reservations",
        summary="A page of the reservations that you may see, the newest first",
        parameters=ReservationList,
        message=_list_reservations,
        answer=replies.Reservations,
    ),
    Route(
        method="POST",
        path="/reservations/cancel",
        summary="Cancel reservations in which no job runs yet; their jobs are placed anew",
        body=ReservationsToCancel,
        message=lambda sender, _, body: ordered.CancelReservations(
            command_id=CommandId(sender.id),
            agreements=body.agreements,
            reason=body.reason,
            client=sender.client,
        ),
        answer=replies.Ruled,
    ),
)
