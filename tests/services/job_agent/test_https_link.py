"""What only a link through a gateway meets: gateways that die, tokens that end, and pilots that are not let in."""

import asyncio
from pathlib import Path

import pytest

from services.job_agent.https_link import HttpsLink
from tests.services.job_agent.links import broker_settings, pilots_gateway
from tests.waiting import eventually
from wms.auth.orders import OrderKeys, PilotCredential
from wms.bus.kafka import Kafka
from wms.bus.topics import site_inbox_of
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.process import free_port
from wms.errors import Unavailable
from wms.ids import PilotId, ReportId, RequestId
from wms.messages.reports import Report
from wms.messages.site_inbox import NoMatch, TokenRenewal
from wms.messages.wire import encode
from wms.runtime.pilot_config import GatewayAccess

PILOT, SITE = PilotId("p-https"), "cern"
KEYS = OrderKeys([b"k" * 32])
ORDER = NoMatch(pilot_id=PILOT, request_id=RequestId("r"), code="", reason="", retry_after_seconds=1)


def link_of(url: str, token: str) -> HttpsLink:
    return HttpsLink(GatewayAccess(url=url), PILOT, SITE, PilotCredential(token, KEYS.of_pilot(PILOT)))


async def is_broken(link: HttpsLink) -> bool:
    try:
        await link.check()
    except Unavailable:
        return True
    return False


async def arrives(link: HttpsLink, broker: KafkaBroker) -> bool:
    """Send an order to the pilot, and return whether the link receives it."""
    topic = site_inbox_of(SITE).name
    kafka = Kafka(broker_settings(broker), "services")
    await kafka.start()
    await kafka.send(topic, PILOT, KEYS.sign(topic, PILOT.encode(), encode(ORDER)))
    await kafka.close()
    return await link.receive(10) == [ORDER]


async def test_after_the_death_of_its_gateway_a_link_opens_at_the_next(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    port = free_port()
    async with pilots_gateway(broker, tmp_path, port=port) as gateway:
        link = link_of(gateway.settings.url, gateway.token(PILOT, SITE))
        await link.open()
        assert await arrives(link, broker)
    await eventually(lambda: is_broken(link))
    with pytest.raises(Unavailable):
        await link.report(Report(report_id=ReportId("a"), pilot_id=PILOT))
    with pytest.raises(Unavailable):
        await link.open()
    async with pilots_gateway(broker, tmp_path, port=port):
        await link.open()
        assert await arrives(link, broker)
        await link.close()


async def test_a_link_outlives_its_token_by_the_renewed_one(broker: KafkaBroker, tmp_path: Path) -> None:
    async with pilots_gateway(broker, tmp_path) as gateway:
        link = link_of(gateway.settings.url, gateway.token(PILOT, SITE, lifetime=2))
        await link.open()
        token = gateway.token(PILOT, SITE)
        link.renew(TokenRenewal(pilot_id=PILOT, sealed=KEYS.seal(PILOT, token)))
        # What it sends bears the new token at once, and the stream the old one to its end.
        await link.report(Report(report_id=ReportId("a"), pilot_id=PILOT))
        await eventually(lambda: is_broken(link))
        await link.open()
        assert await arrives(link, broker)
        await link.close()


async def test_who_is_not_let_in_is_told_why_and_may_come_again(broker: KafkaBroker, tmp_path: Path) -> None:
    async with pilots_gateway(broker, tmp_path) as gateway:
        for token, reason in ((gateway.token("p-other", SITE), "another pilot"), ("a.b.c", "refused")):
            link = link_of(gateway.settings.url, token)
            with pytest.raises(Unavailable, match=reason):
                await link.open()
            assert not link.is_open


async def test_an_open_that_is_given_up_leaves_no_connection(broker: KafkaBroker, tmp_path: Path) -> None:
    silent = await asyncio.start_server(lambda *_: asyncio.sleep(60), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    link = link_of(f"http://127.0.0.1:{port}", "a.b.c")
    opening = asyncio.create_task(link.open())
    await eventually(lambda: link._connection is not None)
    opening.cancel()
    await asyncio.wait([opening])
    assert link._connection is None
    silent.close()
