"""The answer of a gateway that refuses a request, as the error that the service raised."""

import contextlib
from typing import Final

import msgspec

from wms.errors import Rejected, Unavailable

AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses of gateways, and of proxies before them, after which the same request may succeed."""


class RefusedRequest(msgspec.Struct, frozen=True):
    """The body of a gateway's answer to a request that it refuses."""

    code: str
    detail: str = ""
    remedy: str = ""
    places: tuple[str, ...] = ()


def refusal(status: int, read: bytes) -> Rejected | Unavailable:
    """Return the error that a gateway's answer means: Unavailable if the same request may succeed later, else Rejected."""
    said = RefusedRequest(code="")
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        said = msgspec.json.decode(read, type=RefusedRequest)
    # Our own request may still be waiting at the gateway, whose answer was lost.
    if status in AGAIN or said.code == "ID_IN_USE":
        return Unavailable(said.detail or f"the gateway answers with status {status}")
    if not said.code:
        return Rejected("NO_GATEWAY", f"no gateway: the answer has status {status}", "look at the address")
    return Rejected(said.code, said.detail, said.remedy, said.places)
