"""Routes: operations whose request becomes one message to a service, and whose response is the service's answer."""

from collections.abc import Callable
from typing import Any

import msgspec

from services.gateway.operation import Operation
from wms.messages import commands, queries


class Requester(msgspec.Struct, frozen=True):
    """The sender of a message: the id of its request, and the id of the client that gets the answer."""

    id: str
    client: str


class Route(Operation, frozen=True, kw_only=True):
    """An operation that asks a service one question, or gives one order."""

    message: Callable[..., msgspec.Struct]
    """Returns the message for a Requester, the parameters and, if the route has one, the body."""
    reply: type[msgspec.Struct] | None = None
    """The type of the service's answer, if the response is only a part of it; None if it is the whole."""
    view: Callable[[Any], Any] | None = None
    """Returns the part of the service's answer that the response shows; None: the whole."""

    @property
    def topic(self) -> str:
        """The topic of the message: queries for GET, commands for other methods."""
        return queries.TOPIC if self.method == "GET" else commands.TOPIC
