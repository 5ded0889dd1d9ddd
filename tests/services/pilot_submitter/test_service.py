"""The pilot submitter as it is put together: it sends a pilot to an element that advertises itself, and follows it."""

from pathlib import Path

import msgspec

from services.pilot_submitter.config import Config
from services.pilot_submitter.service import build
from tests.services.hosting import do_each_once, hosted, settings
from tests.services.world import World


async def test_each_loop_does_a_round(the_world: World, kafka: str, tmp_path: Path) -> None:
    told = settings(tmp_path, the_world.url, kafka) | {
        "pilots": {"directory": str(tmp_path / "pilots"), "keys": str(tmp_path / "keys")},
        "sandboxes": {"url": (tmp_path / "sandboxes").as_uri()},
    }
    async with hosted("pilot_submitter", msgspec.convert(told, Config), build) as host:
        done = await do_each_once(host)
    assert done == {
        "provide", "follow", "fetch outputs", "ask mapping scripts", "health", "clear", "renew tokens",
        "place", "watch placements", "clear placements", "direct jobs", "revocations", "revoke ended",
        "pilot_submitter.exchanges.replay", "pilot_submitter.placements.replay",
    }  # fmt: skip
