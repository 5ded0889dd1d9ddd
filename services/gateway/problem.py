"""Problem details (RFC 9457): the response to a failed request, with a code, a text, a remedy and each single fault."""

from typing import Final

import msgspec

from wms.bounds import Word
from wms.errors import Rejected, Unavailable, WmsError

MEDIA_TYPE: Final = "application/problem+json"
AGAIN_SECONDS: Final = 2
"""The value of `Retry-After`, in seconds, if a service was not available, or a limit names no time."""

STATUS: Final = {
    "NO_TOKEN": 401,
    "NOT_ALLOWED": 403,
    "NOT_SHARED": 403,
    "NOT_FOR_VO": 403,
    "NOT_HELD": 403,
    "SECRET_REFUSED": 403,
    "SECRET_EXPIRED": 403,
    "PILOT_ENDED": 403,
    "NO_OUTPUT": 404,
    "NO_STORE": 404,
    "NOT_BROKERED": 404,
    "NO_SUCH_ROUTE": 404,
    "METHOD_NOT_ALLOWED": 405,
    "BODY_TOO_SLOW": 408,
    "ID_IN_USE": 409,
    "ID_REUSED": 409,
    "NAME_TAKEN": 409,
    "SECRET_USED": 409,
    "NOT_SET": 409,
    "NOT_REVOKED": 409,
    "RESERVATION_IN_USE": 409,
    "RESERVATION_OVER": 409,
    "NOT_NEXT": 409,
    "WAITING_LIMIT": 409,
    "MEDIA_TYPE": 415,
    "RANGE_NOT_SATISFIABLE": 416,
    "TOO_MANY_REQUESTS": 429,
    "TOO_FAST": 429,
}
"""The HTTP status for each code of a refusal. `status_of` derives the status of codes that are absent here."""
UNPROCESSABLE: Final = 422
STATUSES: Final = (401, 403, 404, 408, 409, 413, 415, 422, 429, 503)
"""The HTTP error statuses that the OpenAPI document lists for operations."""

TITLES: Final = {
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Request too slow",
    409: "In conflict",
    413: "Too large",
    415: "Media type not supported",
    416: "Range not satisfiable",
    422: "Not acceptable as it is",
    429: "Too many requests",
    500: "A fault of the gateway",
    503: "Not available now",
}


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error response: problem details as in RFC 9457, with a code, a remedy and single faults."""

    title: str
    status: int
    code: Word
    """The code of the error, for programs to test. It does not change between versions."""
    detail: str
    remedy: str = ""
    """What the client can do about the error; empty if nothing is known."""
    places: tuple[str, ...] = ()
    """The single faults of the request: each text says where the fault is, and what it is."""
    type: str = "about:blank"


class TooMany(Rejected):
    """The request exceeds a rate or a limit, and may succeed after `seconds`. Its status is 429."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__("TOO_MANY_REQUESTS", message, f"ask again after {seconds:.1f} s")
        self.seconds = seconds


class OutOfRange(Rejected):
    """The requested range begins after the end of an object of `size` bytes. Its status is 416."""

    def __init__(self, size: int) -> None:
        super().__init__(
            "RANGE_NOT_SATISFIABLE",
            f"the archive has {size:,} bytes",
            "ask for a range within it, or for all",
        )
        self.size = size


def status_of(code: str) -> int:
    """Return the HTTP status for the code of a refusal; 422 for a code that no rule names."""
    if code in STATUS:
        return STATUS[code]
    if code.startswith("TOKEN_"):
        return 401
    if code.startswith("NO_SUCH_"):
        return 404
    return 413 if code.endswith("TOO_LARGE") else UNPROCESSABLE


def problem_of(fault: WmsError) -> ProblemDetails:
    """Return the problem details of an error: of Rejected with its code and remedy, of any other with status 503."""
    if isinstance(fault, Rejected):
        status = status_of(fault.code)
        return ProblemDetails(
            title=TITLES[status],
            status=status,
            code=fault.code,
            detail=fault.message,
            remedy=fault.remedy,
            places=fault.details,
        )
    detail = fault.message if isinstance(fault, Unavailable) else ""
    return ProblemDetails(
        title=TITLES[503], status=503, code="UNAVAILABLE", detail=detail, remedy="make the same request again"
    )


def headers_of(fault: WmsError, status: int) -> dict[str, str]:
    """Return the response headers for an error: `Retry-After` for 429 and 503, `WWW-Authenticate` for 401, `Content-Range` for 416."""
    if isinstance(fault, TooMany):
        return {"Retry-After": str(max(1, round(fault.seconds + 0.5)))}
    if isinstance(fault, OutOfRange):
        return {"Content-Range": f"bytes */{fault.size}"}
    if status in (429, 503):
        return {"Retry-After": str(AGAIN_SECONDS)}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}
