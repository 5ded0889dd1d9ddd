"""A loop that is told to end in the moment in which its connections die ends all the same, wherever it waits just then."""

import importlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.services.hosting import hosted, settings
from tests.services.runtime.cuts import Cuts
from tests.services.world import World
from wms import cancellation
from wms.embedded.process import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WAITS = 40
"""More than any loop has before it has begun and done a round."""


def told(service: str, directory: Path) -> dict[str, Any]:
    match service:
        case "pilot_submitter":
            pilots = {"directory": str(directory / "pilots"), "keys": str(directory / "keys")}
            return {"pilots": pilots, "sandboxes": {"url": (directory / "sandboxes").as_uri()}}
        case "agreement":
            return {"agreement": {"site": "A"}, "elements": [{"ce": "slots", "cpus": 4}]}
        case "gateway":
            return {"gateway": {"port": free_port()}}
    return {}


@pytest.mark.parametrize(
    "service",
    ["job_manager", "matcher", "pilot_submitter", "resource_broker", "gateway", "agreement"],
)
async def test_each_loop_ends_wherever_it_waits(
    the_world: World, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setattr(cancellation, "REPEAT_SECONDS", 0.05)
    await the_world.submitted(1)
    kind = importlib.import_module(f"services.{service}.config").Config
    build = importlib.import_module(f"services.{service}.service").build
    config = msgspec.convert(settings(tmp_path, the_world.url, kafka) | told(service, tmp_path), kind)
    cuts = Cuts()
    with cuts.installed():
        async with hosted(service, config, build) as host:
            await host._beat()
            for loop in (host.relay, *(each for each in host._loops if each.name != "http")):
                at = 1
                while at < WAITS and await cuts.strike(loop, at):
                    at += 1
