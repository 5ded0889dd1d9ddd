"""What a client's channel is held to, over Kafka and over HTTPS alike."""

import asyncio

import msgspec
import pytest

from tests.services.gateway.conftest import Door, a_gateway
from tests.system.place import Place
from tests.waiting import eventually
from wms.client import Client, ClientSettings, JobDescription, Rejected, State, Unavailable, select
from wms.client.settings import GatewayAddress

HELLO = JobDescription(executable="echo", arguments=("hello",), name="hello")


async def test_jobs_are_submitted_listed_shown_and_ordered_about(settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        array = JobDescription(executable="echo", arguments=("{n}",), name="sim-{n}", array=1_500)
        submitted = await client.submit([HELLO, array])
        assert submitted.count == 1_501
        first = submitted.ids[0][0]
        assert await client.counts(submitted.selector()) == {"Waiting": 1_501}
        jobs = [job async for job in client.jobs(submitted.selector())]
        assert [job.job_id for job in jobs] == list(submitted.job_ids())
        detail = await client.show(first)
        assert [line.state for line in detail.history][-1] == State.WAITING
        assert (await client.why(first)).job_id == first
        assert (await client.peek(first)).text == ""
        assert (await client.hold(select(first), "let me see")).changed == 1
        assert (await client.edit(select(first), {"priority": 3})).changed == 1
        assert (await client.show(first)).description["priority"] == 3
        assert (await client.kill(submitted.selector())).changed == 1_501
        assert await client.wait(submitted.selector(), timeout=30) == {"Killed": 1_501}
        assert [sweep.first async for sweep in client.sweeps()] == [first + 1]


async def test_lists_of_the_system_are_the_same(settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        assert await client.sites() == ()
        assert await client.pilots() == ()
        assert await client.pilot_orders() == ()
        assert isinstance(await client.shares(), tuple)
        assert (await client.limits()).limits == ()
        assert [line async for line in client.reservations()] == []
        assert await client.predictions("site") == ()


async def test_the_same_id_takes_effect_once(settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        jobs = [msgspec.structs.replace(HELLO, arguments=(str(n),)) for n in range(5_000)]
        one = await client.submit(jobs, id="monday")
        two = await client.submit(jobs, id="monday")
        assert (two.ids, one.repeated, two.repeated) == (one.ids, False, True)


async def test_refusals_keep_their_code_their_places_and_their_remedy(settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        with pytest.raises(Rejected) as refused:
            await client.show(10**9)
        assert (refused.value.code, "wms jobs" in refused.value.remedy) == ("NO_SUCH_JOB", True)
        with pytest.raises(Rejected) as refused:
            await client.rule_site("ban", "cern")
        assert refused.value.code == "NOT_ALLOWED"
        await client.submit(HELLO, id="tuesday")
        with pytest.raises(Rejected) as refused:
            await client.submit(msgspec.structs.replace(HELLO, name="other"), id="tuesday")
        assert refused.value.code == "ID_REUSED"


async def test_a_hundred_calls_at_once_are_answered(settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        first = (await client.submit(HELLO)).ids[0][0]
        answers = await asyncio.gather(*(client.show(first) for _ in range(100)))
        assert {each.job.job_id for each in answers} == {first}


async def test_changes_are_noticed_by_events(settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        job = await client.submit(HELLO)
        async with client.events(job.selector()) as events:
            await eventually(lambda: events.readable)
            await events.moved(0)
            await client.hold(job.selector())
            assert await events.moved(30)
        await client.kill(job.selector())
        ended = [each.state async for each in client.as_completed(job, timeout=60)]
        assert ended == ["Killed"]


async def test_an_expired_token_is_refused_before_anything_is_sent(place: Place, door: Door) -> None:
    late = place.settings("late", lifetime=-1.0)
    for settings in (late, msgspec.structs.replace(late, gateway=GatewayAddress(url=door.url))):
        with pytest.raises(Rejected, match="TOKEN_EXPIRED"):
            async with Client.connect(settings, patience=5):
                pass


async def test_where_nobody_answers_it_is_said_so(place: Place, owner: str) -> None:
    usual = place.settings(owner)
    nowhere = GatewayAddress(url="http://127.0.0.1:1")
    with pytest.raises(Unavailable, match="no gateway answers"):
        async with Client.connect(msgspec.structs.replace(usual, gateway=nowhere), patience=0.5):
            pass


async def test_a_gateway_that_begins_anew_is_waited_for(place: Place, owner: str) -> None:
    usual = place.settings(owner)
    async with a_gateway(place) as first:
        port = int(first.url.rpartition(":")[2])
        settings = msgspec.structs.replace(usual, gateway=GatewayAddress(url=first.url))
        connecting = Client.connect(settings)
        client = await connecting.__aenter__()
        assert (await client.submit(HELLO, id="before")).count == 1
    asking = asyncio.create_task(client.submit(HELLO, id="meanwhile"))
    async with a_gateway(place, port=port):
        assert (await asking).count == 1
        assert (await client.submit(HELLO, id="before")).repeated
        await connecting.__aexit__(None, None, None)
