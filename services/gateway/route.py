"""A route: an operation whose request becomes one message to a service, and whose response is the service's answer."""

from collections.abc import Callable
from typing import Any

import msgspec

from services.gateway.operation import Operation
from wms.messages import commands, queries


class Requester(msgspec.Struct, frozen=True):
    """What each message says of where it comes from: the request's id, and the client that the answer goes to."""

    id: str
    client: str


class Route(Operation, frozen=True, kw_only=True):
    """One route."""

    message: Callable[..., msgspec.Struct]
    """Returns the message for a Requester, the parameters and, if the route has one, the body."""
    reply: type[msgspec.Struct] | None = None
    """The type of the service's answer, if the response is only a part of it."""
    view: Callable[[Any], Any] | None = None
    """Takes that part from the answer."""

    @property
    def topic(self) -> str:
        """The topic of the message: what changes nothing is a query."""
        return queries.TOPIC if self.method == "GET" else commands.TOPIC
