"""One connection for all users: whose answer it is decides who gets it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from services.gateway.service_channels import ServiceChannels
from tests.system.place import Place
from tests.waiting import eventually
from wms.bus.kafka import Kafka, KafkaSettings, Reader
from wms.client.credential import UserCredential, decode
from wms.errors import Rejected
from wms.messages import queries, replies
from wms.messages.commands import Selector
from wms.messages.wire import encode

USERS = 40


def credential(place: Place, owner: str) -> UserCredential:
    return decode(place.token(owner).read_bytes().strip(), owner)


def broker(place: Place) -> KafkaSettings:
    return KafkaSettings(bootstrap=place.broker.bootstrap, fetch_wait_ms=0, idempotent=False)


@contextlib.asynccontextmanager
async def connected(place: Place) -> AsyncIterator[ServiceChannels]:
    services = ServiceChannels(broker(place))
    running = asyncio.create_task(services.run())
    try:
        yield services
    finally:
        running.cancel()
        await services.close()
        await asyncio.wait([running])


@pytest_asyncio.fixture(loop_scope="session")
async def services(place: Place) -> AsyncIterator[ServiceChannels]:
    async with connected(place) as services:
        yield services


def count(query_id: str, client: str) -> queries.CountJobs:
    return queries.CountJobs(query_id=query_id, client=client, selector=Selector(everything=True))


async def counted(services: ServiceChannels, whose: UserCredential, query_id: str) -> replies.JobCounts:
    channel = services.channel(whose)
    query = count(query_id, channel.client)
    return await channel.ask(queries.TOPIC, query_id, query, replies.JobCounts, 30)


async def test_many_users_share_one_connection(place: Place, services: ServiceChannels, owner: str) -> None:
    await counted(services, credential(place, owner), "first")
    before = psutil.Process().num_fds()
    users = [credential(place, f"{owner}-{n}") for n in range(USERS)]
    answers = await asyncio.gather(*(counted(services, each, "same") for each in users))
    assert [each.query_id for each in answers] == ["same"] * USERS
    assert len({each.client for each in answers}) == USERS
    assert psutil.Process().num_fds() < before + USERS / 4
    assert services.waiting == 0


async def test_an_answer_to_one_user_reaches_no_other(
    place: Place, services: ServiceChannels, owner: str
) -> None:
    alice, mallory = credential(place, owner), place.token(f"{owner}-mallory").read_text().strip()
    attacker = Kafka(broker(place), "attacker")
    await attacker.start()
    inbox = await attacker.reader(replies.GATEWAY_INBOX)
    await inbox.assign_end(1)
    try:
        channel = services.channel(alice)
        # Nobody answers this one: it goes to where no service reads.
        asking = asyncio.create_task(
            channel.ask("wms.nowhere", "guessed", count("guessed", channel.client), replies.JobCounts, 60)
        )
        await eventually(lambda: services.waiting)
        # Mallory knows both ids, and has the service answer her under them.
        await attacker.send(queries.TOPIC, "x", encode(count("guessed", channel.client)), mallory)
        hers = f"{owner}-mallory/{channel.client}".encode()
        await eventually(lambda: _came(inbox, hers))
        # The gateway has read hers once it has read this one, which comes after it.
        await counted(services, alice, "later")
        assert not asking.done()
        asking.cancel()
        await asyncio.wait([asking])
    finally:
        await inbox.close()
        await attacker.close()


async def _came(inbox: Reader, key: bytes) -> bool:
    return key in [each.key for each in await inbox.poll(0.5, 100)]


async def test_the_same_id_under_way_twice_is_answered_twice(
    place: Place, services: ServiceChannels, owner: str
) -> None:
    alice = credential(place, owner)
    one, other = await asyncio.gather(*(counted(services, alice, "same") for _ in range(2)))
    assert one.counts == other.counts == {}


async def test_a_refusal_comes_back_to_who_asked(place: Place, services: ServiceChannels, owner: str) -> None:
    channel = services.channel(credential(place, owner))
    query = queries.ShowJob(query_id="none", client=channel.client, job_id=10**9)
    with pytest.raises(Rejected, match="NO_SUCH_JOB"):
        await channel.ask(queries.TOPIC, "none", query, replies.JobDetail, 30)


async def test_an_expired_token_is_sent_nowhere(services: ServiceChannels) -> None:
    channel = services.channel(UserCredential("late", "alice", 0.0, {}))
    with pytest.raises(Rejected, match="TOKEN_EXPIRED"):
        await channel.ask(queries.TOPIC, "x", count("x", channel.client), replies.JobCounts, 30)
