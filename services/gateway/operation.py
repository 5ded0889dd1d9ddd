"""Operations: what the gateway serves under a method and a path, with the types of parameters, request body and response.

The application serves exactly these operations, and `docs/openapi.json` is generated from them. The tests of authorisation try each one.
"""

from typing import Any, Final, Literal

import msgspec

Method = Literal["GET", "POST", "PUT", "DELETE"]
JSON_TYPE: Final = "application/json"
STREAM_TYPE: Final = "text/event-stream"
CREATED: Final = 201


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameter type of operations without parameters. Any parameter in the request is refused."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation of the HTTP API: method, path, and the types of its parameters, request body and response."""

    method: Method
    path: str
    """The path after the prefix `/api/v1`, with names of parameters in braces."""
    summary: str
    answer: Any
    """The type of the response's JSON body; None for a body that is not JSON."""
    answer_type: str = JSON_TYPE
    """The media type of a successful response."""
    status: int = 200
    parameters: type[msgspec.Struct] = NoParameters
    """The struct type of the parameters, each a single value. Parameters named in `path` come from there, all others from the query string."""
    body: Any = None
    """The type of the request's body; None if the request has no body."""
    body_types: tuple[str, ...] = (JSON_TYPE,)
    is_public: bool = False
    """Whether the operation is served without a token."""
    for_payloads: bool = False
    """Whether a payload's token is accepted, for requests about its own job."""
    in_ranges: bool = False
    """Whether the response is an archive, of which the header `Range` asks for a part, and `Prefer` for a redirect to the store."""
    goes_on: bool = False
    """Whether the response is a stream that continues after the event in the header `Last-Event-ID`."""

    @property
    def in_path(self) -> frozenset[str]:
        """The names of the parameters in `path`."""
        return frozenset(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
