"""The agreement service as it is put together: each of its loops does a round."""

from pathlib import Path
from typing import Any

import msgspec

from services.agreement.config import Config
from services.agreement.service import build
from services.resource_broker.grid_snapshot import reader_of_offers
from tests.services.agreement.site_program import SiteProgram
from tests.services.hosting import do_each_once, hosted, settings, shown
from tests.services.world import World


async def test_each_loop_does_a_round(the_world: World, kafka: str, tmp_path: Path) -> None:
    elements: list[dict[str, Any]] = [
        {"ce": "slots", "cpus": 4},
        {
            "ce": "special",
            "kind": "script",
            "cpus": 4,
            "script": {"program": str(SiteProgram(tmp_path, 4).path)},
        },
    ]
    told = settings(tmp_path, the_world.url, kafka) | {"agreement": {"site": "A"}, "elements": elements}
    async with hosted("agreement", msgspec.convert(told, Config), build) as host:
        done = await do_each_once(host)
        assert {"decide-slots", "improve-slots", "decide-special", "reconcile-special", "end"} <= done
        assert shown(host)["offers"] == 0
        assert reader_of_offers("A") in shown(host)["lag"], "the broker looks for it in heartbeats"
    rows = await the_world.sql("select ce, cpus from agreement_element where told_until > now() order by ce")
    assert [tuple(row) for row in rows] == [("slots", 4), ("special", 4)]
