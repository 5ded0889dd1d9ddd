"""The answers of the gateway about itself: that it accepts requests, and which operations it serves."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import conditional
from services.gateway.asking import Desk
from services.gateway.operation import Operation
from wms import __version__


class GatewayHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that the gateway accepts requests, with its version."""

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
    """The endpoint of a document that never changes."""

    def __init__(self, said: object, desk: Desk) -> None:
        self._raw, self._mark = msgspec.json.encode(said), conditional.mark_of(said)
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the document, without asking for a token. Raise TooMany if the sender's address has asked too often."""
        self._desk.gate.admit_anyone(request)
        return conditional.response(request, self._raw, self._mark)


def health() -> GatewayHealth:
    """Return the answer to requests for `/health`."""
    return GatewayHealth(version=__version__)
