"""An agent over a real broker whose system is played by the test: messages that are lost, late, doubled, or overtake.

Each test runs over both links of an agent: to the broker itself, and through a gateway.
"""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.job_agent import reporter
from services.job_agent.agent import Agent
from services.job_agent.payload import process_tree, shepherd
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.links import LINKS, agent_link, broker_settings
from tests.services.job_agent.payload.processes import alive, new_tag
from tests.waiting import eventually
from wms.auth.orders import OrderKeys
from wms.bus.kafka import Kafka, Reader
from wms.bus.topics import find, site_inbox_of
from wms.embedded.kafka_broker import KafkaBroker
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.messages import match_requests, reports
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import FromAgent, Report, Result
from wms.messages.site_inbox import Answer, Kill, NoMatch, Offer, OfferedJob, ToAgent
from wms.messages.wire import PAYLOAD_LIMIT, Codec, encode
from wms.runtime.pilot_config import PilotConfig
from wms.transfer import open_store

_numbers = itertools.count(1)


class Played:
    """The system: it hears what one agent says, and says what the test wants."""

    def __init__(self, kafka: Kafka, pilot_id: str, site: str) -> None:
        self.kafka = kafka
        self.orders = OrderKeys([b"k" * 32])
        self.pilot_id = pilot_id
        self.site = site
        self.heard: list[Any] = []
        self.tokens: list[str] = []
        """With what the agent spoke each time."""
        self.answers = True
        """Whether reports are answered as a willing job manager would."""
        self._readers: list[tuple[Reader, Codec[Any]]] = []

    async def open(self) -> None:
        for topic, union in ((match_requests.TOPIC, MatchRequest), (reports.TOPIC, FromAgent)):
            place = find(topic)
            await self.kafka.ensure([place, site_inbox_of(self.site)])
            reader = await self.kafka.reader(topic)
            reader.assign(dict.fromkeys(range(place.partitions), 0))
            self._readers.append((reader, Codec(union)))

    async def close(self) -> None:
        for reader, _ in self._readers:
            await reader.close()

    async def listen(self) -> None:
        while True:
            for reader, codec in self._readers:
                for record in await reader.poll(0.02, 100):
                    if record.key == self.pilot_id.encode():
                        self.tokens.append(record.token)
                        message = codec.decode(record.payload)
                        self.heard.append(message)
                        if isinstance(message, Report) and self.answers:
                            await self.answer(message)

    async def answer(self, report: Report, **parts: Any) -> None:
        parts.setdefault("granted", (*report.accept, *report.renew))
        parts.setdefault("lease_seconds", 60.0)
        await self.tell(Answer(pilot_id=report.pilot_id, report_id=report.report_id, **parts))

    async def tell(self, *messages: ToAgent) -> None:
        for message in messages:
            await self.send(self.signed(encode(message)))

    def signed(self, order: bytes) -> bytes:
        return self.orders.sign(site_inbox_of(self.site).name, self.pilot_id.encode(), order)

    async def send(self, payload: bytes) -> None:
        await self.kafka.send(site_inbox_of(self.site).name, self.pilot_id, payload)

    async def said(self, what: Callable[[Any], Any], times: int = 1) -> list[Any]:
        """Wait until the agent has said so much that satisfies this, and return it."""

        def enough() -> list[Any]:
            found = [each for each in self.heard if what(each)]
            return found if len(found) >= times else []

        return await eventually(enough, 15)

    async def asked(self, times: int = 1) -> MatchRequest:
        """Wait until the agent has asked so many different questions, and return the last."""

        def enough() -> list[MatchRequest]:
            found = {each.request_id: each for each in self.heard if isinstance(each, MatchRequest)}
            return list(found.values()) if len(found) >= times else []

        return (await eventually(enough, 15))[-1]

    async def offer(self, request: MatchRequest, *jobs: OfferedJob) -> None:
        await self.tell(
            Offer(
                pilot_id=PilotId(self.pilot_id), request_id=request.request_id, jobs=jobs, hold_seconds=30.0
            )
        )

    def reported(self, part: str) -> list[Any]:
        """Return everything said so far in this part of reports, each report once."""
        each = {report.report_id: report for report in self.heard if isinstance(report, Report)}
        return [entry for report in each.values() for entry in getattr(report, part)]

    async def until_reported(self, part: str, *entries: Any) -> None:
        await eventually(lambda: set(entries) <= set(self.reported(part)), 15)

    async def result(self, held: AttemptId) -> Result:
        def there() -> list[Result]:
            return [each for each in self.reported("finish") if (each.job_id, each.epoch) == held]

        (result,) = await eventually(there, 15)
        return result


def job(*argv: str, likely_seconds: float | None = None, **more: Any) -> OfferedJob:
    description = {"executable": argv[0], "arguments": argv[1:], **more}
    return OfferedJob(
        job_id=JobId(next(_numbers)),
        epoch=Epoch(1),
        owner="ann",
        owner_group="g",
        vo="v",
        description=msgspec.Raw(msgspec.json.encode(description)),
        likely_seconds=likely_seconds,
    )


def held(offered: OfferedJob) -> AttemptId:
    return offered.attempt_id


def no_match(request: MatchRequest) -> NoMatch:
    return NoMatch(
        pilot_id=request.pilot_id,
        request_id=request.request_id,
        code="NO_JOBS",
        reason="",
        retry_after_seconds=0.4,
    )


class Scene(msgspec.Struct):
    played: Played
    agent: Agent
    running: asyncio.Task[None]


@pytest_asyncio.fixture(loop_scope="session", params=LINKS)
async def scene(
    broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    monkeypatch.setattr(reporter, "RESEND_AFTER_SECONDS", 0.3)
    async with stage(broker, tmp_path, request.param) as made:
        yield made


def payload_ending(seconds: int) -> str:
    """Return the middle part of a token that says that it ends then."""
    return base64.urlsafe_b64encode(msgspec.json.encode({"exp": seconds})).decode().rstrip("=")


@contextlib.asynccontextmanager
async def stage(broker: KafkaBroker, tmp_path: Path, link_kind: str = "kafka") -> AsyncIterator[Scene]:
    """Start an agent whose system is played."""
    number = next(_numbers)
    pilot_id, site = f"played-{number}", f"stage-{number}"
    config = msgspec.convert(
        {
            "pilot": {
                "pilot_id": pilot_id,
                "site": site,
                "ce": "ce",
                "vo": "v",
                "slots": 2,
                "token_file": "",
                "directory": str(tmp_path / "jobs"),
                "grace_seconds": 0.5,
            },
            "sandboxes": {"url": f"file://{tmp_path}/store"},
        },
        PilotConfig,
    )
    workplace = Workplace(
        root=tmp_path / "jobs",
        store=open_store(config.sandboxes.url),
        site=SiteName(site),
        pilot_id=PilotId(pilot_id),
    )
    kafka = Kafka(broker_settings(broker), "played")
    await kafka.start()
    played = Played(kafka, pilot_id, site)
    await played.open()
    listening = asyncio.create_task(played.listen())
    linking = agent_link(link_kind, broker, tmp_path, pilot_id, site, played.orders)
    async with workplace, linking as link:
        agent = Agent(config, link, workplace)
        running = asyncio.create_task(agent.run())
        yield Scene(played, agent, running)
        running.cancel()
        with contextlib.suppress(BaseExceptionGroup, asyncio.CancelledError):
            await asyncio.wait_for(running, 10)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await played.close()
    await kafka.close()


async def test_a_payload_begins_only_when_its_lease_is_granted(scene: Scene) -> None:
    played, tag = scene.played, new_tag()
    played.answers = False
    wanted = job("sleep", tag)
    await played.offer(await played.asked(), wanted)
    (report, *_) = await played.said(lambda each: isinstance(each, Report) and held(wanted) in each.accept)
    # It asks for one more job meanwhile, so time passed; nothing runs.
    assert (await played.asked(2)).slots == 1
    assert not alive(tag)
    await played.answer(report)
    await eventually(lambda: alive(tag))
    await played.until_reported("start", held(wanted))


async def test_a_report_is_sent_again_until_it_is_answered(scene: Scene) -> None:
    played = scene.played
    played.answers = False
    wanted = job("true")
    await played.offer(await played.asked(), wanted)
    accepts = lambda each: isinstance(each, Report) and held(wanted) in each.accept  # noqa: E731
    first, second = (await played.said(accepts, times=2))[:2]
    assert first == second
    # Both are answered, as both would be; the second answer changes nothing.
    await played.answer(first)
    await played.answer(second)
    assert (await played.result(held(wanted))).outcome == "done"
    count = len([each for each in played.heard if accepts(each)])
    played.answers = True
    await played.said(lambda each: isinstance(each, Report) and each.finish)
    assert len([each for each in played.heard if accepts(each)]) == count


async def test_a_question_that_was_lost_is_asked_again_under_its_id(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.job_agent.match_requests.AGAIN_SECONDS", 0.3)
    monkeypatch.setattr("services.job_agent.match_requests.LOOK_SECONDS", 0.1)
    first, second = (await scene.played.said(lambda each: isinstance(each, MatchRequest), times=2))[:2]
    assert second == msgspec.structs.replace(first, again=True)


async def test_results_that_follow_each_other_go_in_few_reports(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "RESULTS_SECONDS", 0.5)
    monkeypatch.setattr(reporter, "START_SECONDS", 0.5)
    played, many = scene.played, [job("true", likely_seconds=0.01) for _ in range(20)]
    began = shepherd.now()
    await played.offer(await played.asked(), *many)
    for each in many:
        await played.result(held(each))
    told = {each.report_id for each in played.heard if isinstance(each, Report) and each.finish}
    # One at once, one each half second, and one in which something else could not wait.
    assert len(told) <= 3 + (shepherd.now() - began) / 0.5


async def test_a_kill_that_overtakes_the_grant_is_obeyed(scene: Scene) -> None:
    played, tag = scene.played, new_tag()
    played.answers = False
    wanted = job("sleep", tag)
    await played.offer(await played.asked(), wanted)
    (report, *_) = await played.said(lambda each: isinstance(each, Report) and held(wanted) in each.accept)
    await played.tell(Kill(pilot_id=report.pilot_id, jobs=(held(wanted),)))
    await played.answer(report)
    result = await played.result(held(wanted))
    assert (result.outcome, result.code) == ("killed", Code.KILLED_BY_USER)
    assert not alive(tag)


async def test_an_offer_that_comes_twice_is_taken_once(scene: Scene) -> None:
    played = scene.played
    wanted = job("true")
    request = await played.asked()
    await played.offer(request, wanted)
    await played.offer(request, wanted)
    await played.result(held(wanted))
    await played.offer(request, wanted)
    marker = job("true")
    await played.offer(request, marker)
    await played.until_reported("accept", held(marker))
    assert played.reported("accept").count(held(wanted)) == 1
    assert held(wanted) not in played.reported("decline")


async def test_more_than_was_asked_for_is_declined(scene: Scene) -> None:
    played = scene.played
    several = [job("sleep", "60") for _ in range(4)]
    request = await played.asked()
    assert request.slots == 2
    await played.offer(request, several[0])
    await played.offer(request, *several[1:])
    await played.until_reported("decline", held(several[2]), held(several[3]))
    await played.until_reported("accept", held(several[0]), held(several[1]))


async def test_an_offer_in_parts_is_taken_whole(scene: Scene) -> None:
    played = scene.played
    first, second = job("sleep", "60"), job("sleep", "60")
    request = await played.asked()
    await played.offer(request, first)
    # By now it has asked for one more.
    assert (await played.asked(2)).slots == 1
    await played.offer(request, second)
    await played.until_reported("accept", held(first), held(second))


async def test_what_comes_after_the_drain_is_declined_and_the_agent_ends(scene: Scene) -> None:
    played = scene.played
    request = await played.asked()
    scene.agent.drain("the test wants it")
    late = job("true")
    await played.offer(request, late)
    await played.until_reported("decline", held(late))
    await asyncio.wait_for(scene.running, 10)
    last = [each for each in played.heard if isinstance(each, Report)][-1]
    assert (last.state, last.reason) == ("ended", "the test wants it")


async def test_a_grant_that_comes_while_it_drains_is_given_back(scene: Scene) -> None:
    played, tag = scene.played, new_tag()
    played.answers = False
    wanted = job("sleep", tag)
    await played.offer(await played.asked(), wanted)
    (report, *_) = await played.said(lambda each: isinstance(each, Report) and held(wanted) in each.accept)
    scene.agent.drain("the test wants it")
    await played.answer(report)
    played.answers = True
    await played.until_reported("decline", held(wanted))
    assert not alive(tag)


async def test_a_lost_lease_stops_the_payload_without_a_word(scene: Scene) -> None:
    played, tag = scene.played, new_tag()
    wanted = job("sleep", tag)
    await played.offer(await played.asked(), wanted)
    await eventually(lambda: alive(tag))
    played.answers = False
    (report, *_) = await played.said(lambda each: isinstance(each, Report) and held(wanted) in each.start)
    await played.answer(report, lost=(held(wanted),))
    await eventually(lambda: not alive(tag))
    request = await played.asked(2)
    await played.tell(no_match(request))
    assert (await played.asked(3)).slots == 2
    assert played.reported("finish") == []


async def test_a_description_that_it_cannot_read_goes_back_as_its_own_fault(scene: Scene) -> None:
    played = scene.played
    wanted = job("true", of_tomorrow=1)
    await played.offer(await played.asked(), wanted)
    result = await played.result(held(wanted))
    assert (result.outcome, result.code) == ("lost", Code.AGENT_ERROR)
    assert "of_tomorrow" in result.text


async def test_no_match_is_asked_again_after_the_time_told(scene: Scene) -> None:
    played = scene.played
    request = await played.asked()
    before = shepherd.now()
    await played.tell(no_match(request), no_match(request))
    again = await played.asked(2)
    assert again.request_id != request.request_id
    assert shepherd.now() - before >= 0.2


async def test_many_large_results_are_told_in_messages_that_a_broker_takes(scene: Scene) -> None:
    played = scene.played
    # Escaped, each control character takes six.
    results = [
        Result(
            job_id=JobId(n),
            epoch=Epoch(1),
            outcome="done",
            code=Code.DONE,
            stdout_tail="\1" * 4096,
            stderr_tail="\2" * 4096,
        )
        for n in range(1_000_000, 1_000_040)
    ]
    await played.asked()
    for each in results:
        scene.agent._reporter.finish(each)
    await played.until_reported("finish", *results)
    sizes = [len(encode(each)) for each in played.heard if isinstance(each, Report) and each.finish]
    assert len(sizes) >= 3
    assert max(sizes) < PAYLOAD_LIMIT


async def test_an_agent_that_cannot_watch_its_payloads_ends_with_them(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, tag = scene.played, new_tag()

    def blind(*_: object) -> None:
        raise RuntimeError("no /proc here")

    monkeypatch.setattr(process_tree, "usage_by_mark", blind)
    await played.offer(await played.asked(), job("sleep", tag))
    with pytest.raises(BaseExceptionGroup) as caught:
        await asyncio.wait_for(scene.running, 10)
    assert "no /proc here" in repr(caught.value.exceptions)
    await eventually(lambda: not alive(tag))
