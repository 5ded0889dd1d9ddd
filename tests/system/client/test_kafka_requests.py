"""Requests of many clients over one connection, which may break under them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.system.place import Place, owner, place
from wms.bus.kafka import KafkaSettings
from wms.bus.topics import find
from wms.client.credential import UserCredential, decode
from wms.client.kafka_requests import KafkaRequests
from wms.errors import Rejected, Unavailable
from wms.messages import queries, replies
from wms.messages.commands import Selector

__all__ = ["owner", "place"]


@contextlib.asynccontextmanager
async def connected(place: Place) -> AsyncIterator[KafkaRequests]:
    settings = KafkaSettings(bootstrap=place.broker.bootstrap, fetch_wait_ms=0, idempotent=False)
    requests = KafkaRequests(settings, find(replies.GATEWAY_INBOX), "test")
    await requests.open(30)
    try:
        yield requests
    finally:
        await requests.close()


async def sent(requests: KafkaRequests) -> None:
    """Wait until a request is under way. It is looked for at every turn of the loop: its answer takes no longer than a pause."""
    while not requests.waiting:
        await asyncio.sleep(0)


def user(place: Place, owner: str) -> UserCredential:
    return decode(place.token(owner).read_bytes().strip(), owner)


async def counted(
    requests: KafkaRequests, whose: UserCredential, client: str, name: str = "one"
) -> replies.JobCounts:
    query = queries.CountJobs(query_id=name, client=client, selector=Selector(everything=True))
    return await requests.ask(
        queries.TOPIC, name, query, replies.JobCounts, 60, credential=whose, client=client
    )


async def test_clients_of_several_users_get_their_own_answers(place: Place, owner: str) -> None:
    async with connected(place) as requests:
        users = [user(place, f"{owner}-{n}") for n in range(5)]
        answers = await asyncio.gather(
            *(counted(requests, each, f"gateway.{n}") for n, each in enumerate(users))
        )
        assert [each.client for each in answers] == [f"gateway.{n}" for n in range(5)]
        assert requests.waiting == 0
        assert not requests._keys


async def test_an_id_of_a_client_is_under_way_once(place: Place, owner: str) -> None:
    async with connected(place) as requests:
        alice = user(place, owner)
        first = asyncio.create_task(counted(requests, alice, "gateway.x"))
        await sent(requests)
        with pytest.raises(Rejected, match="ID_IN_USE"):
            await counted(requests, alice, "gateway.x")
        await first


async def test_a_connection_that_breaks_is_opened_again_and_the_requests_are_sent_again(
    place: Place, owner: str
) -> None:
    async with connected(place) as requests:
        asking = asyncio.create_task(counted(requests, user(place, owner), "gateway.x"))
        await sent(requests)
        line = requests._line
        assert line is not None
        line.break_off()
        assert (await asking).counts == {}
        assert requests._line is not line


async def test_without_a_broker_it_says_so() -> None:
    requests = KafkaRequests(KafkaSettings(bootstrap="127.0.0.1:1"), find(replies.GATEWAY_INBOX), "test")
    with pytest.raises(Unavailable, match="no broker"):
        await requests.open(0.5)
