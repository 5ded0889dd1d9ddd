"""The matcher as it is put together: it knows what waits before it takes a request, and each of its loops does a round."""

from pathlib import Path

import msgspec

from services.matcher.config import Config
from services.matcher.service import build
from tests.services.hosting import do_each_once, hosted, settings, shown
from tests.services.world import World


async def test_it_has_loaded_what_waits_and_each_loop_does_a_round(
    the_world: World, kafka: str, tmp_path: Path
) -> None:
    await the_world.submitted(7)
    config = msgspec.convert(settings(tmp_path, the_world.url, kafka), Config)
    async with hosted("matcher", config, build) as host:
        assert shown(host)["waiting"] == 7
        done = await do_each_once(host)
        assert shown(host)["waiting"] == 7
        assert done >= {
            "pilots",
            "elements",
            "ads-expiry",
            "rules",
            "standing",
            "idle-pilots",
            "reconcile",
            "watch",
            "part",
        }
        assert shown(host)["probes"].keys() == {"matcher.requests", "matcher.ads", "matcher.queue-feed"}
