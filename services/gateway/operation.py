"""Operations: what the gateway serves under a method and a path, with the types of its parameters, body and answer.

The application serves all operations, `docs/openapi.json` describes them, and the tests of authorisation try each of them.
"""

from typing import Any, Final, Literal

import msgspec

Method = Literal["GET", "POST", "PUT", "DELETE"]
JSON_TYPE: Final = "application/json"
STREAM_TYPE: Final = "text/event-stream"
CREATED: Final = 201


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a request that has none."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of the HTTP API: method, path, and the types of its input and output."""

    method: Method
    path: str
    """The path after the prefix, with names of parameters in braces."""
    summary: str
    answer: Any
    """The type of the response's body; None for a body that is not JSON."""
    answer_type: str = JSON_TYPE
    """The media type of the response."""
    status: int = 200
    parameters: type[msgspec.Struct] = NoParameters
    """The type of the parameters, each a single value. Those named in the path come from there, others from the query string."""
    body: Any = None
    """The type of the request's body; None for a request without one."""
    body_types: tuple[str, ...] = (JSON_TYPE,)
    is_public: bool = False
    """Whether the operation is served without a token."""
    for_payloads: bool = False
    """Whether the token of a payload is admitted, for its own job."""
    goes_on: bool = False
    """Whether the operation's stream goes on from the event that a header names."""

    @property
    def in_path(self) -> frozenset[str]:
        """The names of the parameters in the path."""
        return frozenset(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
