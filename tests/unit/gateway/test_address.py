"""The channel over HTTPS: addresses that tokens may go to."""

import pytest

from wms.errors import Rejected
from wms.gateway.address import checked_url


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
