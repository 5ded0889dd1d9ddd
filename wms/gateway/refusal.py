"""Turns a gateway's refusal of a request into the error that the service raised."""

import contextlib
from typing import Final

import msgspec

from wms.errors import Rejected, Unavailable

AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed later. A gateway may answer them, or a proxy before it."""


class RefusedRequest(msgspec.Struct, frozen=True):
    """The JSON body of a gateway's answer to a refused request: code, text, remedy, and the places of the faults."""

    code: str
    detail: str = ""
    remedy: str = ""
    places: tuple[str, ...] = ()


def refusal(status: int, read: bytes) -> Rejected | Unavailable:
    """Return the error that a gateway's answer means: Unavailable if the same request may succeed later, else Rejected.

    `status` is the HTTP status, and `read` the body of the answer.
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
