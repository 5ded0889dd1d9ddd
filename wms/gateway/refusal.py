"""Turns a gateway's error response into the exception that the service had raised."""

import contextlib
from typing import Final

import msgspec

from wms.errors import Rejected, Unavailable

AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
"""The HTTP statuses, of the gateway or of a proxy before it, after which the same request may succeed later."""


class RefusedRequest(msgspec.Struct, frozen=True):
    """The JSON body of a gateway's error response: code, text, remedy, and the single faults of the request (`places`)."""

    code: str
    detail: str = ""
    remedy: str = ""
    places: tuple[str, ...] = ()


def refusal(status: int, read: bytes) -> Rejected | Unavailable:
    """Return the error that a gateway's response means: Unavailable if the same request may succeed later, otherwise Rejected.

    `status` is the HTTP status, and `read` the body of the response, which need not be JSON.
    """
    said = RefusedRequest(code="")
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        said = msgspec.json.decode(read, type=RefusedRequest)
    # Our own request may still be waiting at the gateway, whose answer was lost.
    if status in AGAIN or said.code == "ID_IN_USE":
        return Unavailable(said.detail or f"the gateway answers with status {status}")
    if not said.code:
        return Rejected("NO_GATEWAY", f"no gateway: the answer has status {status}", "look at the address")
    return Rejected(said.code, said.detail, said.remedy, said.places)
