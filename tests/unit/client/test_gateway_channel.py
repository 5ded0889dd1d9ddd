"""The channel over HTTPS: a token goes to no address that is not a gateway's, or is not encrypted."""

from pathlib import Path

import pytest

from wms.client.credential import TokenFile
from wms.client.gateway_channel import GatewayChannel
from wms.client.settings import GatewayAddress
from wms.errors import Rejected


@pytest.mark.parametrize("url", ["wms.example.org", "http://wms.example.org", "https://a:b@h"])
def test_an_address_that_would_take_the_token_elsewhere_is_refused_at_once(url: str) -> None:
    with pytest.raises(Rejected, match="BAD_GATEWAY"):
        GatewayChannel(GatewayAddress(url=url), TokenFile(Path("/none")))
