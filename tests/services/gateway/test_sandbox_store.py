"""A gateway whose sandbox store is in S3: bytes go in through it, and come out from the store itself under signed URLs."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from services.job_agent.gateway_store import opened_store
from tests.contract.sandbox_store.stores import S3Ground
from tests.s3_proxy import S3Proxy
from tests.services.gateway.conftest import Door, a_gateway
from tests.services.gateway.held import attempt_url, held_job, pilot_token
from tests.system.place import Place
from wms.client import Client
from wms.client.settings import GatewayAddress
from wms.ids import AttemptId
from wms.jobdesc.description import SandboxRef
from wms.runtime.pilot_config import SandboxSettings
from wms.transfer import SandboxStore, digest_of, download, keep, upload

pytestmark = pytest.mark.timeout(240)

DATA = random.Random(3).randbytes(2_000_000)
"""It cannot be packed."""
DIRECT = {"Prefer": "redirect"}


class Scene(NamedTuple):
    """A gateway before a bucket, and an attempt with one input that a pilot holds."""

    door: Door
    bucket: S3Ground
    store: SandboxStore
    attempt_id: AttemptId
    input: SandboxRef

    @property
    def pilot(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {pilot_token(self.door.place.root, 'p1')}"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def buckets(place: Place, s3_proxy: S3Proxy) -> AsyncIterator[tuple[Door, S3Ground]]:
    bucket = S3Ground(s3_proxy, "sandboxes")
    sandboxes = {"url": bucket.url, "s3": msgspec.to_builtins(s3_proxy.settings)}
    async with a_gateway(place, sandboxes=sandboxes) as door:
        yield door, bucket


@pytest_asyncio.fixture(loop_scope="session")
async def scene(place: Place, buckets: tuple[Door, S3Ground], owner: str) -> Scene:
    door, bucket = buckets
    store = bucket.open()
    mine = await upload(store, {"data": owner.encode() + DATA})
    attempt_id = await held_job(place, place.settings(owner), "p1", (mine,))
    return Scene(door, bucket, store, attempt_id, mine)


async def test_who_prefers_it_is_sent_to_the_store(scene: Scene) -> None:
    url = attempt_url(scene.door, scene.attempt_id, f"inputs/{scene.input.sha256}")
    session = scene.door.session
    async with session.get(url, headers=scene.pilot | DIRECT, allow_redirects=False) as answer:
        place = answer.headers["Location"]
        assert (answer.status, answer.headers["Cache-Control"]) == (307, "no-store")
    assert place.startswith(scene.bucket.server.endpoint)
    assert "X-Amz-Expires=600" in place
    assert "ours" not in place, "the secret key"
    async with session.get(place) as answer:
        assert len(await answer.read()) == scene.input.size
    async with session.get(url, headers=scene.pilot, allow_redirects=False) as answer:
        assert (answer.status, len(await answer.read())) == (200, scene.input.size)


async def test_all_readers_of_an_archive_share_one_copy_that_has_no_name(scene: Scene) -> None:
    url = attempt_url(scene.door, scene.attempt_id, f"inputs/{scene.input.sha256}")
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(10):
            answer = await stack.enter_async_context(scene.door.session.get(url, headers=scene.pilot))
            assert answer.status == 200
        assert _unnamed_copies(scene.input.sha256) == 1
        ranged = scene.pilot | {"Range": f"bytes={scene.input.size - 10}-"}
        async with scene.door.session.get(url, headers=ranged) as answer:
            assert (answer.status, len(await answer.read())) == (206, 10)
        assert _unnamed_copies(scene.input.sha256) == 1


def _unnamed_copies(sha256: str) -> int:
    """Return how many files without a name this process has open that hold this archive."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if str(each.readlink()).endswith("(deleted)"):
                found += digest_of(each.read_bytes()) == sha256
    return found


async def test_no_url_is_made_for_who_may_not_read(scene: Scene) -> None:
    for url, pilot in (
        (attempt_url(scene.door, scene.attempt_id, f"inputs/{scene.input.sha256}"), "another"),
        (attempt_url(scene.door, scene.attempt_id, f"inputs/{'0' * 64}"), "p1"),
    ):
        token = {"Authorization": f"Bearer {pilot_token(scene.door.place.root, pilot)}"}
        async with scene.door.session.get(url, headers=token | DIRECT, allow_redirects=False) as answer:
            assert answer.status in {403, 404}
            assert "Location" not in answer.headers


async def test_an_archive_whose_bytes_have_another_digest_is_not_sent(scene: Scene) -> None:
    scene.bucket.damage(scene.input.sha256, b"other bytes")
    url = attempt_url(scene.door, scene.attempt_id, f"inputs/{scene.input.sha256}")
    async with scene.door.session.get(url, headers=scene.pilot) as answer:
        assert answer.status == 503
        assert b"another SHA-256" in await answer.read()


async def test_a_pilot_fetches_from_the_store_and_stores_through_the_gateway(
    scene: Scene, tmp_path: Path
) -> None:
    token = pilot_token(scene.door.place.root, "p1")
    async with opened_store(SandboxSettings(url=scene.door.url), lambda: token) as stores:
        store = stores.of_attempt(scene.attempt_id)
        (tmp_path / "work").mkdir()
        await download(store, scene.input.sha256, tmp_path / "work", size=scene.input.size)
        kept = await asyncio.to_thread(keep, store, {"result": DATA * 5})
    assert (tmp_path / "work" / "data").read_bytes().endswith(DATA)
    assert await scene.store.exists(kept.sha256)


async def test_a_user_stores_through_the_gateway(scene: Scene, place: Place, owner: str) -> None:
    gateway = GatewayAddress(url=scene.door.url)
    settings = msgspec.structs.replace(place.settings(owner), gateway=gateway, sandboxes=None)
    async with Client.connect(settings) as client:
        kept = await client.upload({"a.txt": b"hello"})
    assert await scene.store.exists(kept.sha256)
