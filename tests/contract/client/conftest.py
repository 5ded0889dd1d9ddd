"""A job manager with a gateway before it, and the settings of a client over either channel."""

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from tests.services.gateway.conftest import Door, a_gateway
from tests.system.place import Place, owner, place
from wms.client import ClientSettings
from wms.client.settings import GatewayAddress

__all__ = ["owner", "place"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def door(place: Place) -> AsyncIterator[Door]:
    async with a_gateway(place) as door:
        yield door


@pytest.fixture(params=["kafka", "https"])
def settings(request: pytest.FixtureRequest, place: Place, door: Door, owner: str) -> ClientSettings:
    usual = place.settings(owner)
    if request.param == "kafka":
        return usual
    # A broker at no address: nothing may go past the gateway.
    nowhere = msgspec.structs.replace(usual.kafka, bootstrap="127.0.0.1:1")
    return msgspec.structs.replace(usual, gateway=GatewayAddress(url=door.url), kafka=nowhere)
