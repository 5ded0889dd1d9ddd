"""Sending pilots by plan: a pilot that is on its way counts, in whichever state its element has it."""

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.world import World
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.dispatch.local import LocalDispatcher
from wms.provisioning.plan import Caps
from wms.runtime.config import AuthSettings
from wms.site import ComputingElement

ENDS = [sys.executable, "-c", ""]


@pytest.fixture
async def provisioning(the_world: World, tmp_path: Path) -> Provisioning:
    """Return one that may send pilots to an element with much room."""
    generate_keys(tmp_path / "keys")
    pilots = PilotFactorySettings(directory=str(tmp_path / "pilots"), keys=str(tmp_path / "keys"))
    config = Config(
        auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
    )
    maker = PilotFactory(config, load_key(tmp_path / "keys" / "pilots.pem"), OrderKeys([b"k" * 32]))
    dispatcher = LocalDispatcher(tmp_path / "pilots", ENDS, {"PATH": os.environ["PATH"]})
    doors = CeEndpoints(dispatcher, time.monotonic, local_sites=["*"])
    element = ComputingElement(site="A", ce="ce", slots=10, max_cpu_time=10**6, setup="default")
    await the_world.sql(
        "insert into ad (site, ce, element, advertised_at, expires_at)"
        " values ('A', 'ce', $1::text::jsonb, now(), now() + interval '1 h')",
        msgspec.json.encode(element).decode(),
    )
    return Provisioning(the_world.db, doors, maker, Caps(pilots=8), PilotTracking(the_world.db, doors))


@pytest.mark.parametrize("state", ["Submitting", "Submitted", "Waiting"])
async def test_a_pilot_on_its_way_takes_up_a_job(
    the_world: World, provisioning: Provisioning, state: str
) -> None:
    await the_world.submitted()
    await provisioning.provide()
    await the_world.sql("update pilot set state = $1", state)
    await provisioning.provide()
    assert [row["state"] for row in await the_world.sql("select state from pilot")] == [state]
    await the_world.submitted()
    await provisioning.provide()
    assert len(await the_world.sql("select from pilot")) == 2, "another job gets another pilot"
