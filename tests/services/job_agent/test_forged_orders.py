"""Whoever reaches the broker may say what he likes on a site's topic: the agent does what the services signed, once."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from services.job_agent import reporter
from tests.services.job_agent import test_protocol as protocol
from tests.services.job_agent.links import LINKS
from tests.services.job_agent.payload.processes import alive, new_tag
from tests.services.job_agent.test_protocol import Scene, held, job
from wms.auth.orders import OrderKeys
from wms.bus.topics import site_inbox_of
from wms.embedded.kafka_broker import KafkaBroker
from wms.ids import PilotId, ReportId, RequestId
from wms.messages.reports import Report
from wms.messages.site_inbox import Answer, Kill, Offer, TokenRenewal
from wms.messages.wire import encode

STRANGER = OrderKeys([b"?" * 32])


@pytest_asyncio.fixture(loop_scope="session", params=LINKS)
async def scene(
    broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    monkeypatch.setattr(reporter, "RESEND_AFTER_SECONDS", 0.3)
    async with protocol.stage(broker, tmp_path, request.param) as made:
        yield made


def forged(scene: Scene, order: msgspec.Struct) -> list[bytes]:
    """Return the order as somebody without the pilot's key could send it."""
    played, plain = scene.played, encode(order)
    topic, key = site_inbox_of(played.site).name, played.pilot_id.encode()
    return [
        plain,
        STRANGER.sign(topic, key, plain),
        played.orders.sign(topic, b"another-pilot", plain),
        played.orders.sign("wms.site.elsewhere.inbox", key, plain),
    ]


async def test_forged_offers_answers_and_kills_do_nothing_and_are_counted(scene: Scene) -> None:
    played, mark, tag = scene.played, new_tag(), new_tag()
    request = await played.asked()
    evil, good = job("sleep", mark), job("sleep", tag)
    offer = Offer(
        pilot_id=PilotId(played.pilot_id), request_id=request.request_id, jobs=(evil,), hold_seconds=30
    )
    for payload in forged(scene, offer):
        await played.send(payload)
    await played.offer(request, good)
    await played.until_reported("start", held(good))
    kill = Kill(pilot_id=PilotId(played.pilot_id), jobs=(held(good),))
    for payload in forged(scene, kill):
        await played.send(payload)
    # What was sent after them is done, so that they were heard as well.
    after = job("true")
    await played.offer(await played.asked(2), after)
    await played.result(held(after))
    assert max(each.refused_orders for each in played.heard if isinstance(each, Report)) == 8
    assert alive(tag)
    assert not alive(mark)
    assert held(evil) not in played.reported("accept")
    await played.tell(kill)
    assert (await played.result(held(good))).outcome == "killed"


async def test_orders_of_before_have_no_effect(scene: Scene) -> None:
    played, late = scene.played, job("true")
    pilot_id = PilotId(played.pilot_id)
    done = job("true")
    first = await played.asked()
    await played.offer(first, done)
    await played.result(held(done))
    starts = played.reported("start").count(held(done))
    # The same again, signed and all; one for a request that this agent never made; an answer to no report of its own.
    await played.offer(first, done)
    await played.tell(
        Offer(pilot_id=pilot_id, request_id=RequestId("earlier"), jobs=(late,), hold_seconds=30),
        Answer(
            pilot_id=pilot_id,
            report_id=ReportId("earlier"),
            granted=(held(late),),
            lease_seconds=60,
            drain=True,
        ),
        Kill(pilot_id=pilot_id, jobs=(late.attempt_id,)),
    )
    again = job("true")
    await played.offer(await played.asked(2), again)
    await played.result(held(again))
    assert played.reported("start").count(held(done)) == starts
    assert held(late) not in played.reported("accept")
    assert held(late) not in played.reported("decline")


@pytest.mark.parametrize("scene", ["kafka"], indirect=True)  # a gateway takes no token that is none
async def test_a_new_token_is_taken_from_who_can_seal_it_and_never_an_older_one(scene: Scene) -> None:
    played = scene.played
    pilot_id = PilotId(played.pilot_id)
    token = {end: f"h.{protocol.payload_ending(end)}.s" for end in (10, 20, 30)}
    request = await played.asked()
    for each in (
        played.orders.seal(pilot_id, token[20]),
        played.orders.seal(pilot_id, token[10]),
        STRANGER.seal(pilot_id, token[30]),
    ):
        await played.tell(TokenRenewal(pilot_id=pilot_id, sealed=each))
    wanted = job("true")
    await played.offer(request, wanted)
    await played.result(held(wanted))
    assert played.tokens[-1] == token[20]
    assert {token[10], token[30]}.isdisjoint(played.tokens)
