"""`GET /pilots/{pilot_id}/orders`: the orders to one pilot as server-sent events, while it stays connected."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from services.gateway import request_parsing
from services.gateway.operation import STREAM_TYPE, Operation
from services.gateway.order_stream import OrderStreamResponse
from services.gateway.service_requests import Desk
from services.gateway.site_routes import OnePilot

ORDERS: Final = Operation(
    method="GET",
    path="/pilots/{pilot_id}/orders",
    summary="The orders to your pilot as they come, each signed for it; its newest stream alone gets them",
    parameters=OnePilot,
    answer=None,
    answer_type=STREAM_TYPE,
)


class AttachedPilots:
    """The endpoint by which a pilot attaches: it opens the stream of its orders."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the stream of the pilot's orders. It ends when the token expires or is revoked, the gateway shuts down, or the pilot disconnects.

        Raise Rejected if the token is not that pilot's, and Unavailable if its site's orders cannot be read.
        """
        given = request_parsing.parameters(request, OnePilot)
        credential, principal = self._desk.admit_pilot(request, given.pilot_id)
        stream = await self._desk.pilots.inboxes.attach(principal)
        return OrderStreamResponse(
            stream, credential.expires_at, lambda: self._desk.authentication.check_kept(principal)
        )
