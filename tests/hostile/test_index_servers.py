"""Index servers of submissions that are silent, endless, lie, or lead astray: their jobs say so, and others' are placed as usual."""

from collections.abc import AsyncIterator
from functools import partial

import pytest_asyncio

from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.lying_server import LyingServer, lying_server
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, JobDescription, select
from wms.jobdesc.preferences import JobPreferences

UNRESERVED = JobPreferences(reservation=False)
MANY = 100
"""Jobs of the attacker, each with index servers of its own."""


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[LyingServer]:
    async with lying_server() as running:
        yield running


def led_by(*urls: str, processors: int = 1) -> JobDescription:
    """Return a job that goes where these index servers lead."""
    return JobDescription(
        executable="/bin/true", cpu_time=60, index_servers=urls, preferences=UNRESERVED, processors=processors
    )


@pytest_asyncio.fixture(loop_scope="session")
async def placed(target: Target, server: LyingServer) -> AsyncIterator[Innocent]:
    """Yield a user whose jobs name an index server that tells the truth, with what they usually take."""
    async with Client.connect(target.settings("placed")) as client:
        user = Innocent(client, target, led_by(server.url("element")))
        await user.learn_usual()
        yield user


async def told(client: Client, job_id: int) -> str:
    """Return why the elements are none for a job."""
    return " ".join(why for each in (await client.ranking(job_id)).elements for why in each.reasons)


async def test_each_evil_index_server_is_named_and_leads_nowhere(
    target: Target, innocent: Innocent, placed: Innocent, server: LyingServer
) -> None:
    expected = {
        "silent": "late",
        "endless": "over 2,097,152 bytes",
        "drip": "late",
        "loop": "302",
        "inside": "302",
        "away": "302",
        "millions": "NOT_INDEXED",
        "maze": "NOT_INDEXED",
    }
    async with (
        Client.connect(target.settings("mallory")) as client,
        innocent.beside(),
        placed.beside(),
    ):
        jobs = {kind: (await client.submit(led_by(server.url(f"{kind}/0")))).ids[0][0] for kind in expected}
        for kind, why in expected.items():

            async def named(kind: str = kind, why: str = why) -> bool:
                text = await told(client, jobs[kind])
                return "NOT_INDEXED" in text and why in text

            await eventually(named, PATIENCE_SECONDS)
        counts = await client.counts(select(list(jobs.values())))
        assert counts == {"Checking": len(jobs)}
        assert server.asked["loop"] < 10, "no redirection is followed"
        await client.kill(select(everything=True))


async def test_what_an_index_server_says_of_our_element_is_not_believed(
    target: Target, innocent: Innocent, server: LyingServer
) -> None:
    """It decides whether a job may go there, by its rules of access; size and limits are those of the site's own ad."""
    async with Client.connect(target.settings("mallory")) as client, innocent.beside():
        (shut,) = (await client.submit(led_by(server.url("lies")))).job_ids()
        await eventually(lambda: _says(client, shut, "NOT_INDEXED"), PATIENCE_SECONDS)
        (much,) = (await client.submit(led_by(server.url("element"), processors=60))).job_ids()
        await eventually(lambda: _says(client, much, "offers 16"), PATIENCE_SECONDS)
        await client.kill(select(everything=True))


async def _is_refused(client: Client, job_id: int) -> bool:
    found = (await client.show(job_id)).job
    return (found.state, found.reason) == ("Held", "INDEX_REFUSED")


async def _says(client: Client, job_id: int, text: str) -> bool:
    return text in await told(client, job_id)


async def test_servers_of_this_system_and_of_other_hosts_are_not_asked(
    target: Target, innocent: Innocent
) -> None:
    urls = [
        "file:///etc/passwd",
        "http://localhost:1/",
        "http://169.254.169.254/",
        "http://[::1]:1/",
        "http://0:1/",
    ]
    async with Client.connect(target.settings("mallory")) as client, innocent.beside():
        for url in urls:
            (job_id,) = (await client.submit(led_by(url))).job_ids()
            await eventually(partial(_is_refused, client, job_id), PATIENCE_SECONDS)
        await client.kill(select(everything=True))


async def test_hundreds_of_searches_through_slow_and_large_servers_delay_nobody_else(
    target: Target, innocent: Innocent, placed: Innocent, server: LyingServer
) -> None:
    async with (
        Client.connect(target.settings("mallory")) as client,
        innocent.beside(),
        placed.beside() as beside,
    ):
        for n in range(MANY):
            kinds = ("silent", "millions", "maze", "drip")
            await client.submit(led_by(*(server.url(f"{kind}/{n}") for kind in kinds)))
        seen = len(beside.seconds)
        await eventually(lambda: len(beside.seconds) > seen + 3, PATIENCE_SECONDS)
        await client.kill(select(everything=True))
