"""The resource broker as it is put together: each of its loops does a round."""

from pathlib import Path

import msgspec

from services.resource_broker.config import Config
from services.resource_broker.service import build
from tests.services.hosting import do_each_once, hosted, settings, shown
from tests.services.world import World


async def test_each_loop_does_a_round(the_world: World, kafka: str, tmp_path: Path) -> None:
    config = msgspec.convert(settings(tmp_path, the_world.url, kafka), Config)
    async with hosted("resource_broker", config, build) as host:
        done = await do_each_once(host)
        assert done >= {"steps", "lost-orders", "score", "close", "forget"}
        assert shown(host)["placed"] == 0
        assert shown(host)["probes"].keys() == {"resource_broker.jobs", "resource_broker.decisions"}
