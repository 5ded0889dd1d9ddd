"""A pilot reads the inputs of jobs that it holds and stores their outputs, and does neither for any other job."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio

from services.gateway import attempt_sandboxes
from tests.services.gateway.conftest import Door
from tests.services.gateway.held import attempt_url, executed, held_job, pilot_token
from tests.system.place import Place
from wms.auth.orders import OrderKeys, PilotKey
from wms.auth.payload_token import payload_token
from wms.ids import AttemptId, Epoch, JobId
from wms.jobdesc.description import SandboxRef
from wms.runtime import clock
from wms.transfer import SandboxStore, open_store, upload

GZIP = {"Content-Type": "application/gzip"}


class Held(NamedTuple):
    """A job that the pilot p1 holds, its one input, and another object of the store."""

    attempt_id: AttemptId
    input: SandboxRef
    other: SandboxRef
    store: SandboxStore


@pytest_asyncio.fixture(loop_scope="session")
async def held(place: Place, door: Door, owner: str) -> AsyncIterator[Held]:
    store = open_store((place.root / "sandboxes").as_uri())
    mine = await upload(store, {"data": owner.encode() * 100})
    other = await upload(store, {"secret": b"of another job"})
    yield Held(await held_job(place, place.settings(owner), "p1", (mine,)), mine, other, store)


async def asked(
    door: Door, method: str, url: str, pilot_id: str = "p1", data: Any = None, **headers: str
) -> tuple[int, bytes]:
    bearer = {"Authorization": f"Bearer {pilot_token(door.place.root, pilot_id)}"}
    async with door.session.request(method, url, data=data, headers=bearer | GZIP | headers) as answer:
        return answer.status, await answer.read()


async def test_an_input_comes_whole_and_in_ranges(door: Door, held: Held) -> None:
    url = attempt_url(door, held.attempt_id, f"inputs/{held.input.sha256}")
    status, whole = await asked(door, "GET", url)
    assert (status, len(whole)) == (200, held.input.size)
    assert await asked(door, "GET", url, Range="bytes=10-") == (206, whole[10:])
    assert (await asked(door, "GET", url, Range=f"bytes={len(whole)}-"))[0] == 416


async def test_an_output_is_stored_by_its_digest(door: Door, held: Held) -> None:
    url = attempt_url(door, held.attempt_id, "output")
    status, raw = await asked(door, "PUT", url, data=b"an archive")
    assert status == 201
    assert await held.store.exists(msgspec.json.decode(raw, type=SandboxRef).sha256)


async def test_objects_that_are_no_inputs_of_the_job_are_not_told_of(door: Door, held: Held) -> None:
    for digest in (held.other.sha256, "0" * 64):
        url = attempt_url(door, held.attempt_id, f"inputs/{digest}")
        status, raw = await asked(door, "GET", url)
        assert (status, msgspec.json.decode(raw)["code"]) == (404, "NO_SUCH_INPUT")


async def test_only_the_pilot_with_the_lease_reads_and_writes(door: Door, held: Held) -> None:
    older = held.attempt_id._replace(epoch=type(held.attempt_id.epoch)(2))
    for pilot_id, attempt_id in (("p2", held.attempt_id), ("p1", older)):
        for method, rest in (("GET", f"inputs/{held.input.sha256}"), ("PUT", "output")):
            url = attempt_url(door, attempt_id, rest)
            status, raw = await asked(door, method, url, pilot_id, b"x" if method == "PUT" else None)
            assert (status, msgspec.json.decode(raw)["code"]) == (403, "NOT_HELD")


async def test_a_payload_reads_its_inputs_and_writes_nothing(door: Door, held: Held) -> None:
    keys = OrderKeys.from_file(door.place.root / "keys" / "orders.key")
    token = payload_token(PilotKey("p1", keys.of_pilot("p1")), held.attempt_id, 600.0, clock.timestamp())
    bearer = {"Authorization": f"Bearer {token}"} | GZIP
    later = held.attempt_id._replace(epoch=Epoch(2))
    wanted = {held.attempt_id: 200, later: 403, held.attempt_id._replace(job_id=JobId(1)): 403}
    for attempt_id, status in wanted.items():
        url = attempt_url(door, attempt_id, f"inputs/{held.input.sha256}")
        async with door.session.get(url, headers=bearer) as answer:
            assert answer.status == status
    async with door.session.put(
        attempt_url(door, held.attempt_id, "output"), data=b"x", headers=bearer
    ) as no:
        assert no.status == 403


async def test_users_do_not_come_in_this_way(door: Door, held: Held, owner: str) -> None:
    url = attempt_url(door, held.attempt_id, f"inputs/{held.input.sha256}")
    async with door.session.get(url, headers=door.headers(owner)) as answer:
        assert answer.status == 403


async def test_a_lease_that_is_lost_is_believed_for_moments_only(
    door: Door, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_sandboxes, "BELIEVED_SECONDS", 0.0)
    url = attempt_url(door, held.attempt_id, "output")
    assert (await asked(door, "PUT", url, data=b"early"))[0] == 201
    await executed(door.place, "delete from lease where job_id = $1", held.attempt_id.job_id)
    assert (await asked(door, "PUT", url, data=b"late"))[0] == 403


async def test_pilots_share_one_exchange_with_the_broker(door: Door, held: Held) -> None:
    url = attempt_url(door, held.attempt_id, f"inputs/{held.input.sha256}")
    for number in range(5):
        assert (await asked(door, "GET", url, f"stranger{number}"))[0] == 403
    async with door.session.get(f"{door.url}/api/v1/health") as answer:
        assert answer.status == 200


async def test_an_output_over_the_limit_is_refused(door: Door, held: Held) -> None:
    url = attempt_url(door, held.attempt_id, "output")
    status, raw = await asked(door, "PUT", url, data=b"x" * (held.store.max_object + 1))
    assert (status, msgspec.json.decode(raw)["code"]) == (413, "SANDBOX_TOO_LARGE")
