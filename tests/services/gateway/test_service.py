"""The gateway as it is put together: each of its loops does a round."""

from pathlib import Path

import msgspec

from services.gateway.config import Config
from services.gateway.service import build
from tests.services.hosting import do_each_once, hosted, settings, shown
from tests.services.world import World


async def test_each_loop_does_a_round(the_world: World, kafka: str, tmp_path: Path) -> None:
    config = msgspec.convert(settings(tmp_path, the_world.url, kafka), Config)
    async with hosted("gateway", config, build) as host:
        assert await do_each_once(host) == {"revocations"}
        assert shown(host)["url"] == "http://127.0.0.1:8480"
        assert (shown(host)["waiting"], shown(host)["requests"]) == (0, 0)
