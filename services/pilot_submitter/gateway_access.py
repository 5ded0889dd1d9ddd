"""What a pilot's configuration says of gateways: their addresses, and the certificates of the authorities that vouch for them."""

from pathlib import Path

from services.pilot_submitter.config import PilotGatewaySettings
from wms.errors import Rejected
from wms.gateway.address import checked_url
from wms.runtime.pilot_config import GatewayAccess, SandboxSettings

AUTHORITIES_BYTES = 200_000
"""The most bytes of certificates that are sent with each pilot. A larger file is refused when the service starts."""


def gateway_access(settings: PilotGatewaySettings) -> GatewayAccess:
    """Return the `[gateway]` table of a pilot's TOML configuration; empty if no gateway is set.

    Raise Rejected if the address is not an https URL, or the file of certificate authorities cannot be read.
    """
    if not settings.url:
        return GatewayAccess()
    authorities = _certificates(settings.authorities, "`authorities` of [gateway]")
    return GatewayAccess(url=checked_url(settings.url), authorities=authorities)


def store_access(url: str, authorities: str) -> SandboxSettings:
    """Return the `[sandboxes]` table of a pilot's TOML configuration. `authorities` is the path of a PEM file on this machine; empty: none.

    Raise Rejected if the file cannot be read.
    """
    return SandboxSettings(url=url, authorities=_certificates(authorities, "`sandboxes_authorities`"))


def _certificates(name: str, setting: str) -> str:
    if not name:
        return ""
    try:
        with Path(name).open("rb") as file:
            text = file.read(AUTHORITIES_BYTES + 1).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected("CONFIG_INVALID", f"the authorities in {setting}: {error}") from None
    if len(text) > AUTHORITIES_BYTES or "-----BEGIN CERTIFICATE-----" not in text:
        raise Rejected(
            "CONFIG_INVALID",
            f"{name} is no file of certificates of at most {AUTHORITIES_BYTES:,} bytes",
            f"name a file in PEM in {setting}",
        )
    return text
