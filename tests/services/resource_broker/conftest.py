"""A broker over a world of services."""

import pytest

from tests.services.brokers import BrokerWorld
from tests.services.resource_broker.sites import Sites
from tests.services.world import World


@pytest.fixture
async def brokers(the_world: World) -> BrokerWorld:
    return BrokerWorld(the_world)


@pytest.fixture
async def sites(brokers: BrokerWorld) -> Sites:
    """Three sites that start their next jobs in 30, 90 and 300 s."""
    found = Sites(brokers, A=30, B=90, C=300)
    await found.advertise()
    return found
