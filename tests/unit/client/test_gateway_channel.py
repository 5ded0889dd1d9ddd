"""A channel to a gateway is not made where tokens would go in clear."""

from pathlib import Path

import pytest

from wms.client.credential import TokenFile
from wms.client.gateway_channel import GatewayChannel
from wms.client.settings import GatewayAddress
from wms.errors import Rejected


def test_an_address_in_clear_on_another_machine_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(Rejected, match="in clear"):
        GatewayChannel(GatewayAddress(url="http://gateway.example.org"), TokenFile(Path("none")))
