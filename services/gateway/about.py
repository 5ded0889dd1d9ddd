"""Operations by which the gateway describes itself: its health, and the OpenAPI document of all operations."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import conditional_requests
from services.gateway.operation import Operation
from services.gateway.service_requests import Desk
from wms import __version__


class GatewayHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The body of the response to `GET /health`: the version of the gateway. Any response shows that the gateway accepts requests."""

    version: str


HEALTH: Final = Operation(
    method="GET",
    path="/health",
    summary="Whether the gateway takes requests, for load balancers",
    answer=GatewayHealth,
    is_public=True,
)
OPENAPI: Final = Operation(
    method="GET", path="/openapi.json", summary="This document", answer=dict[str, Any], is_public=True
)


class About:
    """The endpoint of a JSON document that is fixed at the start, such as the health response or the OpenAPI document."""

    def __init__(self, said: object, desk: Desk) -> None:
        self._raw, self._mark = msgspec.json.encode(said), conditional_requests.mark_of(said)
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the document without checking a token; status 304 without a body if the client has it.

        Raise TooMany if the client's address exceeds its request rate.
        """
        self._desk.authentication.admit_anyone(request)
        return conditional_requests.response(request, self._raw, self._mark)


def health() -> GatewayHealth:
    """Return the body of the response to `GET /health`."""
    return GatewayHealth(version=__version__)
