"""Gives a payload access to its own job through the pilot's gateway: a token in a file, and environment variables with its path.

The variables are those that the program `wms` and the module `wms.client` read. Payloads of a pilot without a gateway get no
such access.
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
    """The gateway that the payloads of a pilot use, and the source of their tokens.

    `authorities` are the certificates, in PEM, of the authorities that signed the gateway's. Empty: those that the node
    trusts.
    """

    url: str
    authorities: str = ""
    token: Callable[[AttemptId], str]
    """A function that returns the token with which an attempt's payload can read its own job."""

    def files(self, attempt_id: AttemptId) -> dict[str, str]:
        """Return the contents of the files for one attempt's payload, by file name: its token, and the authorities if there are any."""
        authorities = {AUTHORITIES_NAME: self.authorities} if self.authorities else {}
        return {TOKEN_NAME: self.token(attempt_id) + "\n", **authorities}


def gateway_of(
    config: PilotConfig, payload_token: Callable[[AttemptId, float], str]
) -> PayloadGateway | None:
    """Return the gateway for the payloads of a pilot; None if the pilot has none.

    `payload_token` is called with an attempt and a number of seconds, and returns a token that is valid so long.
    """
    if not config.gateway.url:
        return None
    pilot = config.pilot
    seconds = pilot.lifetime_seconds + max(pilot.grace_seconds, pilot.stop_seconds)
    return PayloadGateway(
        url=config.gateway.url,
        authorities=config.gateway.authorities,
        token=lambda attempt_id: payload_token(attempt_id, seconds),
    )


def variables(gateway: PayloadGateway | None, directory: Path) -> Mapping[str, str]:
    """Return the environment variables with the gateway's address and the paths of a payload's files in `directory`.

    The result is empty if `gateway` is None.
    """
    if gateway is None:
        return {}
    authorities = {AUTHORITIES_VARIABLE: str(directory / AUTHORITIES_NAME)} if gateway.authorities else {}
    return {URL_VARIABLE: gateway.url, TOKEN_VARIABLE: str(directory / TOKEN_NAME), **authorities}
