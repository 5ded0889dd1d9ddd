"""The gateway's part of a pilot's configuration: its address, and the certificates of the authorities that vouch for it."""

from pathlib import Path

from services.pilot_submitter.config import PilotGatewaySettings
from wms.errors import Rejected
from wms.gateway.address import checked_url
from wms.runtime.pilot_config import GatewayAccess

AUTHORITIES_BYTES = 200_000
"""The most bytes of certificates that are sent with each pilot. A larger file is refused when the service starts."""


def gateway_access(settings: PilotGatewaySettings) -> GatewayAccess:
    """Return the `[gateway]` table of a pilot's TOML configuration; empty if no gateway is set.

    Raise Rejected if the address is not an https URL, or the file of certificate authorities cannot be read.
    """
    if not settings.url:
        return GatewayAccess()
    return GatewayAccess(url=checked_url(settings.url), authorities=_certificates(settings.authorities))


def _certificates(name: str) -> str:
    if not name:
        return ""
    try:
        with Path(name).open("rb") as file:
            text = file.read(AUTHORITIES_BYTES + 1).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected("CONFIG_INVALID", f"the authorities of the gateway: {error}") from None
    if len(text) > AUTHORITIES_BYTES or "-----BEGIN CERTIFICATE-----" not in text:
        raise Rejected(
            "CONFIG_INVALID",
            f"{name} is no file of certificates of at most {AUTHORITIES_BYTES:,} bytes",
            "name a file in PEM in `authorities` of [gateway]",
        )
    return text
