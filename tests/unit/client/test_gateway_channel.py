"""The channel over HTTPS: addresses that tokens may go to, and what refusals tell."""

import msgspec
import pytest

from wms.client.gateway_channel import checked_url, refusal
from wms.errors import Rejected, Unavailable


@pytest.mark.parametrize(
    "url",
    [
        "https://wms.example.org",
        "https://h:8443/",
        "http://127.0.0.1:8480",
        "http://localhost:1",
        "http://[::1]:80",
    ],
)
def test_a_gateway_is_spoken_to_by_tls_or_on_this_machine(url: str) -> None:
    assert checked_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "wms.example.org",
        "http://wms.example.org",
        "http://10.0.0.1",
        "ftp://h",
        "https://",
        "https://a:b@h",
        "https://h:99999",
        "https://h?x=1",
    ],
)
def test_a_token_goes_nowhere_else(url: str) -> None:
    with pytest.raises(Rejected, match="BAD_GATEWAY"):
        checked_url(url)


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
