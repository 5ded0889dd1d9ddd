"""Elements as they are configured."""

from typing import Any

import msgspec

from services.agreement.config import Config
from services.agreement.configured_elements import elements
from services.agreement.slot_calendar import CalendarDecisions
from services.agreement.slurm import SlurmElement
from tests.services.world import World
from wms.db import ad
from wms.messages.ads import Advertise
from wms.runtime import clock
from wms.site import ComputingElement

LEAST: dict[str, Any] = {"auth": {"jwks": "/keys/jwks.json"}, "agreement": {"site": "A"}}


async def test_each_kind_has_its_decision_maker(the_world: World) -> None:
    told = {"elements": [{"ce": "one"}, {"ce": "two", "kind": "slurm"}]}
    calendar, slurm = elements(msgspec.convert(LEAST | told, Config), the_world.db)
    assert isinstance(calendar.maker, CalendarDecisions)
    assert calendar.helper is None
    assert calendar.rules.owner_share == 0.5
    assert isinstance(slurm.maker, SlurmElement)
    assert slurm.helper is slurm.maker


async def test_a_calendar_has_the_slots_of_the_ad_and_none_without(the_world: World) -> None:
    config = msgspec.convert(LEAST | {"elements": [{"ce": "ce"}]}, Config)
    (served,) = elements(config, the_world.db)
    assert (await served.maker.look([])).cpus == 0
    said = Advertise(
        element=ComputingElement(site="A", ce="ce", slots=12, max_cpu_time=86_400), advertised_at=clock.now()
    )
    async with the_world.db.transaction() as tx:
        await ad.store(tx, [said])
    assert (await served.maker.look([])).cpus == 12
