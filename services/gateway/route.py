"""Routes: operations whose request becomes one message to a service, and whose response is the service's reply."""

from collections.abc import Callable
from typing import Any

import msgspec

from services.gateway.operation import Operation
from wms.messages import commands, queries


class Requester(msgspec.Struct, frozen=True):
    """The sender of a message: the id of the request, and the id of the client to which the reply is addressed."""

    id: str
    client: str


class Route(Operation, frozen=True, kw_only=True):
    """An operation that sends a service one query or command, and responds with its reply."""

    message: Callable[..., msgspec.Struct]
    """A function that returns the message to send, for a Requester, the parameters and, if the route has one, the body."""
    reply: type[msgspec.Struct] | None = None
    """The type of the service's reply, if the response shows only a part of it; None: the same as `answer`."""
    view: Callable[[Any], Any] | None = None
    """A function that returns the part of the service's reply to show; None: the whole reply."""

    @property
    def topic(self) -> str:
        """The topic of the message: queries for GET, commands for other methods."""
        return queries.TOPIC if self.method == "GET" else commands.TOPIC
