"""The heartbeat of an advertiser: it tells what is wrong, and a matcher stores it for its sender alone."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.advertiser.advertising import AdPublisher, Publisher, SourceLoop
from services.advertiser.config import SiteStatement
from services.advertiser.heartbeat import Heartbeats
from services.advertiser.provider import SeenElement
from services.advertiser.site_token import SiteToken
from services.advertiser.sources import AdvertisedSource
from services.matcher import ads
from tests.services.world import World
from wms.auth.principal import Kind, Principal
from wms.bus.connection_settings import KafkaSettings
from wms.bus.consumer import Delivery
from wms.bus.kafka import Kafka
from wms.db import instance
from wms.errors import Unavailable
from wms.messages.ads import AdvertiserMessage, AdvertiserState, LoopTrouble
from wms.messages.wire import Codec, encode
from wms.runtime import clock


class Away:
    """Stands for a batch system that does not answer."""

    async def read(self) -> list[SeenElement]:
        raise Unavailable("squeue is away")


def of(owner: str, *, kind: Kind = "site", pid: int = 1, **troubles: str) -> Delivery[Any]:
    told = tuple(LoopTrouble(loop=loop, text=text) for loop, text in troubles.items())
    principal = Principal(kind=kind, owner=owner, group="", vo="", site=owner, token_id="t", expires_at=0)
    return Delivery(principal, AdvertiserState(host="gate", pid=pid, version="1", troubles=told))


async def stored(world: World) -> dict[str, Any]:
    async with world.db.transaction() as tx:
        return {
            each["instance_id"]: each for each in await instance.instances(tx) if "/" in each["instance_id"]
        }


async def test_a_loop_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wms.runtime.every.STUCK_AFTER", (1, 0.0))

    kafka = Kafka(KafkaSettings(), "advertiser")
    publisher = Publisher(kafka, SiteToken(str(tmp_path / "token")))
    source = AdvertisedSource("slurm-0", Away(), lambda _: SiteStatement(), 60.0, 300.0, 900.0)
    loop = SourceLoop(AdPublisher(publisher, source, now=clock.now), source)
    await loop._every._once()
    told = Heartbeats(publisher, kafka, [loop]).state()
    assert told.pid == os.getpid()
    (trouble,) = told.troubles
    assert trouble.loop == "advertise-slurm-0"
    assert "squeue is away" in trouble.text


async def test_each_owner_of_a_token_writes_one_row_and_none_of_a_service(the_world: World) -> None:
    async with the_world.db.transaction() as tx:
        await ads.handle(tx, [of("A", pid=1), of("A", pid=2, loop="fails"), of("B"), of("eve", kind="user")])
    rows = await stored(the_world)
    assert {name: (row["service"], row["pid"], row["alive"]) for name, row in rows.items()} == {
        "advertiser/A": ("advertiser", 2, True),
        "advertiser/B": ("advertiser", 1, True),
    }
    assert msgspec.json.decode(rows["advertiser/A"]["health"]) == {
        "owner": "A",
        "troubles": {"loop": "fails"},
    }


def test_its_texts_are_of_one_line_whatever_a_site_writes() -> None:
    trouble = LoopTrouble(loop="a", text="fails\n\x1b[2Jmatcher  up \u202e")
    sent = encode(AdvertiserState(host="gate", pid=1, version="1", troubles=(trouble,)))
    message = Codec[AdvertiserMessage](AdvertiserMessage).decode(sent)
    assert isinstance(message, AdvertiserState)
    assert message.troubles[0].text.isprintable()


async def test_another_process_of_an_owner_begins_the_row_anew(the_world: World) -> None:
    began = []
    for pid in (1, 1, 2):
        async with the_world.db.transaction() as tx:
            await ads.handle(tx, [of("A", pid=pid)])
        began.append((await stored(the_world))["advertiser/A"]["started_at"])
    assert began[0] == began[1] < began[2]
