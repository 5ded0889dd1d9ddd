"""What a payload is given to read its own job through the pilot's gateway: a token of its own, in a file, and the variables that name it.

The variables are those that `wms` and `wms.client` read. A payload of a pilot without a gateway is given nothing.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from wms.gateway.address import AUTHORITIES_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE
from wms.ids import AttemptId
from wms.runtime.pilot_config import PilotConfig

TOKEN_NAME: Final = ".wms-token"  # noqa: S105 - a name
AUTHORITIES_NAME: Final = ".wms-authorities.pem"


class PayloadGateway(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway of all payloads of a pilot. `authorities` are certificates in PEM; empty for those that the node trusts."""

    url: str
    authorities: str = ""
    token: Callable[[AttemptId], str]
    """Returns the token of an attempt's payload."""

    def files(self, attempt_id: AttemptId) -> dict[str, str]:
        """Return the files of one payload, by name. They are secret."""
        authorities = {AUTHORITIES_NAME: self.authorities} if self.authorities else {}
        return {TOKEN_NAME: self.token(attempt_id) + "\n", **authorities}


def gateway_of(
    config: PilotConfig, payload_token: Callable[[AttemptId, float], str]
) -> PayloadGateway | None:
    """Return the gateway for the payloads of a pilot; None if the pilot has none. `payload_token` makes a token of some seconds."""
    if not config.gateway.url:
        return None
    pilot = config.pilot
    seconds = pilot.lifetime_seconds + pilot.grace_seconds
    return PayloadGateway(
        url=config.gateway.url,
        authorities=config.gateway.authorities,
        token=lambda attempt_id: payload_token(attempt_id, seconds),
    )


def variables(gateway: PayloadGateway | None, directory: Path) -> Mapping[str, str]:
    """Return the environment variables for a payload whose files are in a directory; empty without a gateway."""
    if gateway is None:
        return {}
    authorities = {AUTHORITIES_VARIABLE: str(directory / AUTHORITIES_NAME)} if gateway.authorities else {}
    return {URL_VARIABLE: gateway.url, TOKEN_VARIABLE: str(directory / TOKEN_NAME), **authorities}
