"""How many requests of an owner are under way."""

from typing import Any

import pytest

from services.gateway.concurrent_requests import ConcurrentRequests, ConcurrentRequestsMiddleware
from services.gateway.problem import TooMany
from tests.unit.gateway.requested import a_request


def test_an_owner_has_so_many_and_no_more() -> None:
    under_way = ConcurrentRequests(2)
    for _ in range(2):
        under_way.enter(a_request(), "mallory")
    with pytest.raises(TooMany, match="2 requests of this user"):
        under_way.enter(a_request(), "mallory")
    under_way.enter(a_request(), "alice")
    under_way.leave("mallory")
    under_way.enter(a_request(), "mallory")


async def test_a_request_that_fails_is_counted_out() -> None:
    under_way = ConcurrentRequests(1)

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        request = a_request()
        request.scope = scope
        under_way.enter(request, "alice")
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await ConcurrentRequestsMiddleware(app, under_way)({"type": "http"}, None, None)  # type: ignore[arg-type]  # not used
