"""The bus over both brokers."""

from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from tests.contract.bus.instances import Bus, Keys
from wms.embedded.server import KafkaServer


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys") / "keys")


@pytest.fixture(
    params=[
        pytest.param("broker", id="embedded"),
        pytest.param("apache_kafka", id="apache", marks=[pytest.mark.kafka, pytest.mark.timeout(240)]),
    ]
)
def cluster(request: pytest.FixtureRequest) -> KafkaServer:
    return cast("KafkaServer", request.getfixturevalue(request.param))


@pytest_asyncio.fixture(loop_scope="session")
async def bus(cluster: KafkaServer, database: str, keys: Keys) -> AsyncIterator[Bus]:
    async with Bus.opened(cluster, database, keys) as each:
        yield each
