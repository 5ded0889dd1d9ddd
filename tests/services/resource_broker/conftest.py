"""A broker over a world of services."""

import pytest

from tests.services.brokers import BrokerWorld
from tests.services.world import World


@pytest.fixture
async def brokers(the_world: World) -> BrokerWorld:
    return BrokerWorld(the_world)
