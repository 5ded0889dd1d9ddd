"""What refusals of a gateway tell."""

import msgspec
import pytest

from wms.errors import Rejected, Unavailable
from wms.gateway.refusal import refusal


def test_a_refusal_is_the_services_own() -> None:
    said = {
        "code": "NO_SUCH_JOB",
        "detail": "there is no job 7",
        "remedy": "look",
        "places": ["here"],
        "status": 404,
    }
    fault = refusal(404, msgspec.json.encode(said))
    assert isinstance(fault, Rejected)
    assert (fault.code, fault.message, fault.remedy, fault.details) == (
        "NO_SUCH_JOB",
        "there is no job 7",
        "look",
        ("here",),
    )


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_passes_is_asked_again(status: int) -> None:
    assert isinstance(refusal(status, b"<html>bad gateway</html>"), Unavailable)


def test_a_request_that_still_waits_is_asked_again() -> None:
    assert isinstance(refusal(409, b'{"code": "ID_IN_USE"}'), Unavailable)


def test_another_server_is_no_gateway() -> None:
    fault = refusal(404, b"<html>not found</html>")
    assert isinstance(fault, Rejected)
    assert fault.code == "NO_GATEWAY"
