"""What the gateway may be told."""

import msgspec
import pytest

from services.gateway.config import Config, GatewaySettings

LEAST = {"auth": {"jwks": "/keys/jwks.json"}}


def gateway(**said: object) -> GatewaySettings:
    return msgspec.convert(LEAST | {"gateway": said}, Config).gateway


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "gateway.example.org", "192.0.2.1"])
def test_no_token_crosses_a_network_in_clear(host: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="certificate"):
        gateway(host=host)
    assert gateway(host=host, certificate="/tls/cert.pem").url == f"https://{host}:8480"
    assert gateway(host=host, behind_proxy=True).url.startswith("http://")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_is_served_without_a_certificate(host: str) -> None:
    assert gateway(host=host).host == host


@pytest.mark.parametrize(
    "key", ["port", "answer_seconds", "read_seconds", "users", "idle_seconds", "connections"]
)
def test_nothing_may_be_zero(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=key):
        gateway(**{key: 0})
