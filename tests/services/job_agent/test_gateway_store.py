"""The files of a pilot's jobs through a real gateway: down whole, though they break on the way, and up once."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.job_agent import gateway_store
from services.job_agent.gateway_store import AttemptStores, opened_store
from tests.services.gateway.conftest import Door, a_gateway
from tests.services.gateway.held import held_job, pilot_token
from tests.system.place import Place, owner, place
from wms.embedded.process import free_port
from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId, Epoch
from wms.jobdesc.description import SandboxRef
from wms.runtime.pilot_config import SandboxSettings
from wms.transfer import SandboxStore, download, keep, open_store, upload
from wms.transfer.stored_object import MAX_OBJECT

__all__ = ["owner", "place"]

PIECE = 1 << 16
DATA = random.Random(1).randbytes(2_000_000)
"""It cannot be packed."""


class Scene(NamedTuple):
    """A pilot's store behind a gateway, and the attempt that the pilot holds."""

    door: Door
    stores: AttemptStores
    attempt_id: AttemptId
    input: SandboxRef
    behind: SandboxStore


@asynccontextmanager
async def cut_short(gateway: str, cuts: int = 0) -> AsyncIterator[tuple[str, list[int]]]:
    """Run a proxy before a gateway that breaks off the first answers in their midst.

    Yield its address, and a list that gets the first byte that each request asks for.
    """
    seen: list[int] = []

    async def passed(request: web.Request) -> web.StreamResponse:
        seen.append(int(request.headers.get("Range", "bytes=0-")[6:-1]))
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method, f"{gateway}{request.path}", headers=headers, data=await request.read()
            ) as told,
        ):
            body = await told.read()
        answer = web.StreamResponse(status=told.status, headers={"Content-Length": str(len(body))})
        await answer.prepare(request)
        if len(seen) <= cuts:
            await answer.write(body[: PIECE * len(seen)])
            assert request.transport is not None
            request.transport.close()
        else:
            await answer.write(body)
        return answer

    server = TestServer(_application(passed))
    async with server:
        yield str(server.make_url("")).rstrip("/"), seen


def _application(passed: Any) -> web.Application:
    application = web.Application(client_max_size=MAX_OBJECT)
    application.router.add_route("*", "/{tail:.*}", passed)
    return application


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def door(place: Place) -> AsyncIterator[Door]:
    async with a_gateway(place) as door:
        yield door


@pytest_asyncio.fixture(loop_scope="session")
async def scene(place: Place, door: Door, owner: str) -> AsyncIterator[Scene]:
    behind = open_store((place.root / "sandboxes").as_uri())
    mine = await upload(behind, {"data": owner.encode() + DATA})
    attempt_id = await held_job(place, place.settings(owner), "p1", (mine,))
    async with opened_store(SandboxSettings(url=door.url), lambda: pilot_token(place.root, "p1")) as stores:
        yield Scene(door, stores, attempt_id, mine, behind)


async def test_inputs_come_down_and_outputs_go_up(scene: Scene, tmp_path: Path) -> None:
    store = scene.stores.of_attempt(scene.attempt_id)
    (tmp_path / "work").mkdir()
    await download(store, scene.input.sha256, tmp_path / "work", size=scene.input.size)
    assert (tmp_path / "work" / "data").read_bytes().endswith(DATA)
    for content in (b"small", DATA * 2):
        kept = await asyncio.to_thread(keep, store, {"result": content})
        assert await scene.behind.exists(kept.sha256)


async def test_what_was_sent_before_is_not_sent_again(scene: Scene) -> None:
    store = scene.stores.of_attempt(scene.attempt_id)
    async with cut_short(scene.door.url) as (url, seen):
        settings = SandboxSettings(url=url)
        async with opened_store(settings, lambda: pilot_token(scene.door.place.root, "p1")) as stores:
            store = stores.of_attempt(scene.attempt_id)
            kept = [await asyncio.to_thread(store.keep, b"the same") for _ in range(3)]
    assert kept[0] == kept[1] == kept[2]
    assert len(seen) == 1


async def test_a_job_of_another_pilot_is_refused_at_once(scene: Scene, tmp_path: Path) -> None:
    others = scene.stores.of_attempt(scene.attempt_id._replace(epoch=Epoch(7)))
    with pytest.raises(Rejected, match="NOT_HELD"):
        await others.fetch(scene.input.sha256, tmp_path / "x")
    with pytest.raises(Rejected, match="NOT_HELD"):
        await asyncio.to_thread(others.keep, b"under an older epoch")
    assert list(tmp_path.iterdir()) == []


async def test_a_download_that_breaks_goes_on_where_it_was(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_store, "PAUSES", (0.01,) * 6)
    async with cut_short(scene.door.url, cuts=2) as (url, seen):
        settings = SandboxSettings(url=url)
        async with opened_store(settings, lambda: pilot_token(scene.door.place.root, "p1")) as stores:
            found = await stores.of_attempt(scene.attempt_id).fetch(scene.input.sha256, tmp_path / "x")
    assert found.sha256 == scene.input.sha256
    assert [each > 0 for each in seen] == [False, True, True]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


async def test_no_gateway_is_a_matter_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_store, "PAUSES", (0.01,))
    settings = SandboxSettings(url=f"http://127.0.0.1:{free_port()}")
    async with opened_store(settings, lambda: "token") as stores:
        store = stores.of_attempt(AttemptId(1, Epoch(1)))  # type: ignore[arg-type]
        with pytest.raises(Unavailable, match="did not come"):
            await store.fetch("a" * 64, tmp_path / "x")
        with pytest.raises(Unavailable, match="could not be sent"):
            await asyncio.to_thread(store.keep, b"x")


async def test_a_token_never_goes_to_another_machine_in_clear() -> None:
    with pytest.raises(Rejected, match="in clear"):
        async with opened_store(SandboxSettings(url="http://gateway.example.org"), lambda: "token"):
            pass
