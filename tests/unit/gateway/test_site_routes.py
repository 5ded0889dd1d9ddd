"""Requests about places and the messages that they become."""

from datetime import UTC, datetime

import pytest

from services.gateway.route import Requester, Route
from services.gateway.site_routes import (
    ROUTES,
    OneSite,
    OrderToDrop,
    Page,
    PilotsOrder,
    ReservationList,
    ReservationsToCancel,
    SiteOrder,
)
from wms.errors import Rejected
from wms.ids import AgreementId
from wms.messages import commands, queries

ME = Requester("an-id", "a-client")


def route(method: str, path: str) -> Route:
    (found,) = [each for each in ROUTES if (each.method, each.path) == (method, path)]
    return found


@pytest.mark.parametrize("path", ["/queues", "/sites", "/plans", "/pilot-orders"])
def test_a_list_goes_on_after_a_page(path: str) -> None:
    query = route("GET", path).message(ME, Page(after=40, limit=20))
    assert isinstance(query, queries.PagedQuery)
    assert (query.after, query.limit, query.client) == (40, 20, "a-client")


def test_an_order_about_a_site_may_name_an_element() -> None:
    rule = route("POST", "/sites/{site}/orders").message(
        ME, OneSite(site="cern"), SiteOrder(action="ban", ce="ce1")
    )
    assert isinstance(rule, commands.RuleSite)
    assert (rule.site, rule.ce, rule.action) == ("cern", "ce1", "ban")


def test_pilots_are_ordered_and_withdrawn() -> None:
    start = route("POST", "/pilot-orders").message(ME, None, PilotsOrder(count=3, site="cern"))
    assert isinstance(start, commands.StartPilots)
    assert (start.count, start.site) == (3, "cern")
    stop = route("DELETE", "/pilot-orders/{order}").message(ME, OrderToDrop(order=7))
    assert isinstance(stop, commands.StopPilots)
    assert stop.orders == (7,)


def test_reservations_are_chosen_by_state_and_paged_by_time() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    given = ReservationList(state="confirmed,Temporary", after_time=at, after_id="a1")
    query = route("GET", "/reservations").message(ME, given)
    assert isinstance(query, queries.ListReservations)
    assert query.states == ("Confirmed", "Temporary")
    assert query.after == queries.ReservationCursor(at=at, agreement_id="a1")
    with pytest.raises(Rejected, match="BAD_SELECTOR"):
        route("GET", "/reservations").message(ME, ReservationList(state="happy"))


def test_reservations_are_cancelled() -> None:
    body = ReservationsToCancel(agreements=(AgreementId("a1"), AgreementId("a2")), reason="no need")
    order = route("POST", "/reservations/cancel").message(ME, None, body)
    assert isinstance(order, commands.CancelReservations)
    assert (order.agreements, order.reason, order.client) == (("a1", "a2"), "no need", "a-client")
