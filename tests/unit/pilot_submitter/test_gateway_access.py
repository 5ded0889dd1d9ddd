"""What pilots are told of the gateway: an encrypted address, and certificates that are some."""

from pathlib import Path

import pytest

from services.pilot_submitter.config import PilotGatewaySettings
from services.pilot_submitter.gateway_access import gateway_access, store_access
from wms.errors import Rejected
from wms.runtime.pilot_config import GatewayAccess, SandboxSettings

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def test_without_a_gateway_pilots_are_told_of_none() -> None:
    assert gateway_access(PilotGatewaySettings()) == GatewayAccess()


def test_the_authorities_go_along_as_text(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    settings = PilotGatewaySettings(url="https://h:8443/", authorities=str(tmp_path / "ca.pem"))
    assert gateway_access(settings) == GatewayAccess(url="https://h:8443", authorities=CERTIFICATE)
    store = store_access("https://h", str(tmp_path / "ca.pem"))
    assert store == SandboxSettings(url="https://h", authorities=CERTIFICATE)
    assert store_access("file:///s", "") == SandboxSettings(url="file:///s")


@pytest.mark.parametrize("url", ["http://wms.example.org", "wms.example.org", "https://user:word@h"])
def test_an_address_that_is_not_encrypted_is_refused(url: str) -> None:
    with pytest.raises(Rejected, match="BAD_GATEWAY"):
        gateway_access(PilotGatewaySettings(url=url))


@pytest.mark.parametrize("text", [None, "", "no certificate", CERTIFICATE * 5_000])
def test_a_file_without_certificates_is_refused(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Rejected, match="CONFIG_INVALID"):
        gateway_access(PilotGatewaySettings(url="https://h", authorities=str(file)))
    with pytest.raises(Rejected, match="sandboxes_authorities"):
        store_access("https://h", str(file))
