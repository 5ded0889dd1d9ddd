"""A route: a method and a path, and the message to a service that a request there becomes.

Everything that is known of a route stands in its `Route`: the application serves it, `docs/openapi.json` describes it, and the
tests of authorisation walk over all of them.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from wms.messages import commands, queries

Method = Literal["GET", "POST", "PUT", "DELETE"]
PREFIX = "/api/v1"


class Requester(msgspec.Struct, frozen=True):
    """What each message says of its sender: the request's id, and the client that the answer goes to."""

    id: str
    client: str


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request without parameters."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One route. Its request becomes one message, and the service's answer the response."""

    method: Method
    path: str
    """The path below the prefix; parameters in braces."""
    summary: str
    answer: Any
    """The type of the response's body."""
    message: Callable[..., msgspec.Struct]
    """Returns the message for a Requester, the parameters and, if the route has one, the body."""
    parameters: type[msgspec.Struct] = NoParameters
    """Fields named in the path are taken from it, the others from the query string; all are single values."""
    body: Any = None
    """The type of the request's body; None for a request without one."""
    reply: type[msgspec.Struct] | None = None
    """The type of the service's answer, if the response is only a part of it."""
    view: Callable[[Any], Any] | None = None
    """Takes that part from the answer."""

    @property
    def topic(self) -> str:
        """The topic of the message: what changes nothing is a query."""
        return queries.TOPIC if self.method == "GET" else commands.TOPIC

    @property
    def in_path(self) -> frozenset[str]:
        """The names of the parameters in the path."""
        return frozenset(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
