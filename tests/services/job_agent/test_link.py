"""What every link of a job agent does, whatever it is made of: each test runs over Kafka itself and through a gateway.

`test_protocol` runs whole agents over both.
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from services.job_agent.link import AgentLink
from tests.services.job_agent import test_protocol as protocol
from tests.services.job_agent.links import LINKS, agent_link, broker_settings
from tests.services.job_agent.payload.processes import alive, new_tag
from tests.services.job_agent.test_protocol import Played, Scene, held, job
from tests.waiting import eventually
from wms.bus.kafka import Kafka
from wms.embedded.kafka_broker import KafkaBroker
from wms.errors import Unavailable
from wms.ids import PilotId, ReportId, RequestId
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Peeked, Report
from wms.messages.site_inbox import Kill, NoMatch, Peek, ToAgent
from wms.messages.wire import encode
from wms.site import Resource

PILOT = PilotId("p-link")


class Linked(msgspec.Struct):
    """A link of a pilot, not yet open, and the services, played by the test."""

    link: AgentLink
    played: Played


@pytest_asyncio.fixture(loop_scope="session", params=LINKS)
async def linked(
    broker: KafkaBroker, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Linked]:
    site = f"link-{tmp_path.name}"
    kafka = Kafka(broker_settings(broker), "played")
    await kafka.start()
    played = Played(kafka, PILOT, site)
    played.answers = False
    await played.open()
    async with agent_link(request.param, broker, tmp_path, PILOT, site, played.orders) as link:
        yield Linked(link, played)
        await link.close()
    await played.close()
    await kafka.close()


@pytest_asyncio.fixture(loop_scope="session", params=LINKS)
async def scene(broker: KafkaBroker, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with protocol.stage(broker, tmp_path, request.param) as made:
        yield made


def no_match(name: str) -> NoMatch:
    return NoMatch(
        pilot_id=PILOT, request_id=RequestId(name), code="NO_JOBS", reason="", retry_after_seconds=1
    )


async def received(link: AgentLink, count: int) -> list[ToAgent]:
    found: list[ToAgent] = []

    async def enough() -> bool:
        found.extend(await link.receive(0.5))
        return len(found) >= count

    await eventually(enough)
    return found


async def heard(played: Played, count: int) -> list[msgspec.Struct]:
    async def enough() -> bool:
        for reader, codec in played._readers:
            for record in await reader.poll(0.02, 100):
                if record.key == PILOT.encode():
                    played.heard.append(codec.decode(record.payload))
        return len(played.heard) >= count

    await eventually(enough)
    return list(played.heard)


async def report_named(name: str, played: Played) -> Report:
    """Wait for a report, beside whatever other tests have sent to the same topics."""
    found: list[Report] = []

    async def came() -> bool:
        told = await heard(played, 0)
        found.extend(each for each in told if isinstance(each, Report) and each.report_id == name)
        return bool(found)

    await eventually(came)
    return found[0]


async def test_orders_arrive_in_their_order_from_the_moment_it_is_open(linked: Linked) -> None:
    await linked.link.open()
    orders = [no_match(f"r{number}") for number in range(20)]
    await linked.played.tell(*orders)
    assert await received(linked.link, 20) == orders
    assert linked.link.is_open
    await linked.link.check()


async def test_what_a_pilot_sends_arrives_under_its_id(linked: Linked) -> None:
    await linked.link.open()
    request = MatchRequest(
        request_id=RequestId("r"), pilot_id=PILOT, resource=Resource(setup="", vo="v", cpu_time=1)
    )
    report = Report(report_id=ReportId("a"), pilot_id=PILOT)
    peeked = Peeked(
        pilot_id=PILOT,
        job_id=1,  # type: ignore[arg-type]
        epoch=1,  # type: ignore[arg-type]
        stream="stdout",
        offset=0,
        size=3,
        text="\u2713 \n",
        query_id="q",
        client="c",
        asker="ann",
    )
    await linked.link.ask(request)
    await linked.link.report(report)
    await linked.link.report(peeked)
    told = await heard(linked.played, 3)
    assert [each for each in told if isinstance(each, MatchRequest)] == [request]
    assert [each for each in told if not isinstance(each, MatchRequest)] == [report, peeked]


async def test_orders_to_others_do_not_arrive_and_forged_ones_are_counted(linked: Linked) -> None:
    await linked.link.open()
    played = linked.played
    topic = f"wms.site.{played.site}.inbox"
    await played.kafka.send(topic, "another", played.orders.sign(topic, b"another", encode(no_match("x"))))
    await played.send(played.orders.sign(topic, b"another", encode(no_match("y"))))
    await played.send(encode(no_match("z")))
    await played.send(b"no\nline")
    await played.tell(no_match("mine"))
    assert await received(linked.link, 1) == [no_match("mine")]
    # What is no line does not come through a gateway at all.
    assert linked.link.refused in (2, 3)


async def test_a_large_order_arrives_whole(linked: Linked) -> None:
    await linked.link.open()
    large = msgspec.structs.replace(no_match("large"), reason="x" * 4_000)
    many = [msgspec.structs.replace(large, request_id=RequestId(str(number))) for number in range(100)]
    await linked.played.tell(*many)
    assert await received(linked.link, 100) == many


async def test_a_large_report_is_taken(linked: Linked) -> None:
    await linked.link.open()
    report = Report(
        report_id=ReportId("large"),
        pilot_id=PILOT,
        accept=tuple((number, 1) for number in range(4_000)),  # type: ignore[misc]
    )
    await linked.link.report(report)
    assert await report_named("large", linked.played) == msgspec.convert(msgspec.to_builtins(report), Report)


async def test_a_closed_link_says_so(linked: Linked) -> None:
    report = Report(report_id=ReportId("a"), pilot_id=PILOT)
    for _ in range(2):
        assert not linked.link.is_open
        with pytest.raises(Unavailable):
            await linked.link.report(report)
        with pytest.raises(Unavailable):
            await linked.link.receive(0.1)
        with pytest.raises(Unavailable):
            await linked.link.check()
        await linked.link.open()
        await linked.link.close()


async def test_an_opened_link_may_be_opened_anew(linked: Linked) -> None:
    await linked.link.open()
    await linked.link.open()
    await linked.played.tell(no_match("again"))
    assert await received(linked.link, 1) == [no_match("again")]


async def test_a_running_job_is_killed_within_a_second_and_its_output_seen_before(scene: Scene) -> None:
    played, tag = scene.played, new_tag()
    wanted = job("/bin/sh", "-c", f"echo here; exec sleep {tag}")
    await played.offer(await played.asked(), wanted)
    await eventually(lambda: alive(tag))
    pilot_id, (job_id, epoch) = PilotId(played.pilot_id), held(wanted)

    async def seen() -> bool:
        peek = Peek(
            pilot_id=pilot_id,
            job_id=job_id,
            epoch=epoch,
            stream="stdout",
            offset=0,
            limit=100,
            query_id="q",
            client="c",
            asker="ann",
        )
        await played.tell(peek)
        return any(isinstance(each, Peeked) and each.text == "here\n" for each in played.heard)

    await eventually(seen)
    began = time.monotonic()
    await played.tell(Kill(pilot_id=pilot_id, jobs=(held(wanted),)))
    await eventually(lambda: not alive(tag))
    assert time.monotonic() - began < 1.0
    assert (await played.result(held(wanted))).outcome == "killed"
