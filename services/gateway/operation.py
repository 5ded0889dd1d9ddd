"""An operation: what is served under a method and a path, and what goes in and out.

The application serves all operations, `docs/openapi.json` describes them, and the tests of authorisation walk over them.
"""

from typing import Any, Final, Literal

import msgspec

Method = Literal["GET", "POST", "PUT", "DELETE"]
PREFIX: Final = "/api/v1"
JSON_TYPE: Final = "application/json"
STREAM_TYPE: Final = "text/event-stream"
CREATED: Final = 201


class NoParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request without parameters."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation."""

    method: Method
    path: str
    """The path below the prefix; parameters in braces."""
    summary: str
    answer: Any
    """The type of the response's body; None for a body that is not JSON."""
    answer_type: str = JSON_TYPE
    """The media type of the response."""
    status: int = 200
    parameters: type[msgspec.Struct] = NoParameters
    """Fields named in the path are taken from it, the others from the query string; all are single values."""
    body: Any = None
    """The type of the request's body; None for a request without one."""
    body_types: tuple[str, ...] = (JSON_TYPE,)
    is_public: bool = False
    """Whether it is served without a token."""

    @property
    def in_path(self) -> frozenset[str]:
        """The names of the parameters in the path."""
        return frozenset(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
