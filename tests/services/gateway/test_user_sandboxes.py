"""Files go up and come down through the gateway, by their digests and to whom they belong."""

import asyncio
import contextlib
import random
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tests.services.gateway.conftest import Door, a_gateway
from tests.system.place import Place
from wms.client import Client, ClientSettings, JobDescription, Rejected
from wms.client.credential import TokenFile
from wms.client.gateway_channel import GatewayChannel
from wms.client.settings import GatewayAddress
from wms.db.database import Database
from wms.jobdesc.array import as_value
from wms.transfer import open_store, upload

HELLO = JobDescription(executable="echo", output_sandbox=("*.txt",))


@pytest.fixture
def settings(place: Place, door: Door, owner: str) -> ClientSettings:
    gateway = GatewayAddress(url=door.url)
    return msgspec.structs.replace(place.settings(owner), gateway=gateway, sandboxes=None)


async def test_files_of_a_submission_go_through_the_gateway(place: Place, settings: ClientSettings) -> None:
    async with Client.connect(settings) as client:
        small = await client.upload({"a.txt": b"hello"})
        large = await client.upload({"b.bin": bytes(range(256)) * 40_000})
        assert await client.upload({"a.txt": b"hello"}) == small
    store = open_store((place.root / "sandboxes").as_uri())
    assert await store.exists(small.sha256)
    assert await store.exists(large.sha256)


async def test_a_submission_refers_to_archives_alone_that_its_owner_sent(
    place: Place, settings: ClientSettings, owner: str
) -> None:
    """A digest is no proof that one has the file: each way to name one is refused, until the file itself was sent."""
    stranger = msgspec.structs.replace(settings, auth=place.settings(f"{owner}-stranger").auth)
    files: dict[str, Path | bytes] = {"secret.txt": f"a secret of {owner}".encode()}
    async with Client.connect(settings) as client, Client.connect(stranger) as other:
        archive = await client.upload(files)
        named = JobDescription(executable="cat", arguments=("secret.txt",), input_sandbox=(archive,))
        values: dict[str, tuple[str, ...]] = {"file": (as_value(archive),) * 2}
        few = JobDescription(executable="cat", input_parameters=("file",), parameters=values)
        many = msgspec.structs.replace(few, parameters={"file": values["file"] * 5_000})
        for each in (named, few, many):
            with pytest.raises(Rejected, match="SANDBOX_NOT_SENT"):
                await other.submit(each)
        plain = await other.submit(JobDescription(executable="cat"), hold=True)
        with pytest.raises(Rejected, match="SANDBOX_NOT_SENT"):
            await other.edit(plain.selector(), {"input_sandbox": [msgspec.to_builtins(archive)]})
        for each in (named, few, many):
            await client.submit(each)
        assert await other.upload(files) == archive
        for each in (named, few, many):
            await other.submit(each)
        await other.edit(plain.selector(), {"input_sandbox": [msgspec.to_builtins(archive)]})


async def test_the_output_of_a_job_comes_to_its_owner_alone(
    place: Place, door: Door, settings: ClientSettings, owner: str
) -> None:
    store = open_store((place.root / "sandboxes").as_uri())
    kept = await upload(store, {"result.txt": b"42"})
    async with Client.connect(settings) as client:
        job_id = (await client.submit(HELLO)).ids[0][0]
        with pytest.raises(Rejected, match="NO_OUTPUT"):
            await client.output(job_id, place.root / f"none-{job_id}")
        await _ended_with(place, job_id, kept.sha256)
        fetched = await client.output(job_id, place.root / f"out-{job_id}")
    assert (fetched.files, (place.root / f"out-{job_id}" / "result.txt").read_bytes()) == (1, b"42")

    url = f"{door.url}/api/v1/jobs/{job_id}/output"
    async with door.session.get(url, headers=door.headers(owner, Range="bytes=0-9")) as answer:
        assert (answer.status, len(await answer.read())) == (206, 10)
        assert answer.headers["ETag"] == f'"{kept.sha256}"'
    async with door.session.get(url, headers=door.headers(owner, Range="bytes=999999-")) as answer:
        assert (answer.status, answer.content_type) == (416, "application/problem+json")
        assert answer.headers["Content-Range"] == f"bytes */{kept.size}"
    async with door.session.get(url, headers=door.headers(owner, Range="bytes=0-1,3-4")) as answer:
        assert (answer.status, len(await answer.read())) == (200, kept.size)
    async with door.session.get(url, headers=door.headers(f"{owner}-other")) as answer:
        assert answer.status == 404


async def test_a_reader_below_the_least_rate_is_cut_off_and_goes_on_by_range(
    place: Place, owner: str
) -> None:
    data = random.Random(5).randbytes(30_000_000)
    kept = await open_store((place.root / "sandboxes").as_uri()).put(data)
    async with a_gateway(place, write_seconds=0.2, transfer_rate=1e9) as door:
        gateway = GatewayAddress(url=door.url)
        settings = msgspec.structs.replace(place.settings(owner), gateway=gateway, sandboxes=None)
        async with Client.connect(settings) as client:
            job_id = (await client.submit(HELLO)).ids[0][0]
            await _ended_with(place, job_id, kept.sha256)
            url = f"{door.url}/api/v1/jobs/{job_id}/output"
            had = await _read_slowly(door, url, door.headers(owner))
            assert 0 < len(had) < len(data)
            first = len(had) // 2
            async with door.session.get(
                url, headers=door.headers(owner, Range=f"bytes={first}-{first + 99}")
            ) as rest:
                assert rest.status == 206
                assert had[:first] + await rest.read() == data[: first + 100]


async def _read_slowly(door: Door, url: str, headers: dict[str, str]) -> bytes:
    """Return what comes of a download until it is cut off, read a little at a time."""
    read = bytearray()
    with contextlib.suppress(aiohttp.ClientError):
        async with door.session.get(url, headers=headers) as answer:
            assert answer.status == 200
            async for piece in answer.content.iter_chunked(100_000):
                read += piece
                await asyncio.sleep(0.01)
    return bytes(read)


async def _ended_with(place: Place, job_id: int, digest: str) -> None:
    """Write an attempt of the job that stored this output."""
    db = await Database.connect(place.postgres, size=1, application="test")
    try:
        async with db.transaction() as tx:
            await tx.execute(
                "insert into ended_attempt (job_id, epoch, pilot_id, site, ce, offered_at, ended_at, outcome, output_sha256)"
                " values ($1, 1, 'p', 'A', 'ce', now(), now(), 'done', $2)",
                job_id,
                digest,
            )
    finally:
        await db.close()


async def test_an_archive_over_the_limit_is_refused(door: Door, settings: ClientSettings) -> None:
    channel = GatewayChannel(GatewayAddress(url=door.url), TokenFile(Path(settings.auth.token_file)))
    await channel.open(15)
    try:
        store = channel.sandboxes(None)
        with pytest.raises(Rejected, match="SANDBOX_TOO_LARGE"):
            await store._put(b"x" * (store.max_object + 1))
    finally:
        await channel.close()
