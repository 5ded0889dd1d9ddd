"""A fault in one element is that one's alone: the others are looked at, shown and used as if it were not there."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.services.world import World, user
from wms.db import ad, block
from wms.ids import JobId
from wms.messages import replies
from wms.messages.ads import Advertise
from wms.messages.queries import ListSites
from wms.messages.wire import Codec, encode
from wms.site import ComputingElement
from wms.why.survey import Survey

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def advertise(world: World, *names: str, **offered: Any) -> None:
    given: dict[str, Any] = {"setup": "default", "slots": 4, "max_cpu_time": 10**6, "memory_mb": 4_000}
    ads = [
        Advertise(
            element=ComputingElement(site="A", ce=name, **(given | offered)), advertised_at=datetime.now(UTC)
        )
        for name in names
    ]
    async with world.db.transaction() as tx:
        await ad.store(tx, ads)


async def reason(world: World) -> str:
    (row,) = await world.sql("select code from wait_reason")
    return str(row["code"])


@pytest.mark.parametrize("value", [f'"max_cpu_time": {2**70}', f'"slots": {-(2**63)}', '"memory_mb": 1e300'])
async def test_an_element_stored_with_what_is_out_of_bounds_does_no_harm(
    the_world: World, value: str
) -> None:
    await advertise(the_world, "good", "spoilt")
    await the_world.sql(
        "update ad set received_at = now(), element = element || $1::jsonb where ce = 'spoilt'",
        f"{{{value}}}",
    )
    await the_world.submitted(memory_mb=2_000)
    await the_world.look()
    assert await reason(the_world) == "NO_PILOT"
    async with the_world.db.transaction() as tx:
        assert [each.ce for each in await ad.fresh(tx)] == ["good"]
    sites = await the_world.ask(user(), ListSites(query_id="q"))
    assert isinstance(sites, replies.Sites)
    assert Codec[replies.Reply](replies.Reply, rules=False).decode(encode(sites)) == sites
    notices = {each.ce: each.notices for each in sites.sites}
    assert notices["good"] == ()
    assert notices["spoilt"][0].startswith("unreadable")


async def test_an_element_that_cannot_be_judged_is_passed_over(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await advertise(the_world, "good", "spoilt", "better")
    await the_world.submitted(memory_mb=2_000)
    judged = Survey._reached

    def faulty(self: Survey, element: ComputingElement) -> Any:
        if element.ce == "spoilt":
            raise OverflowError("Python int too large to convert to C long")
        return judged(self, element)

    monkeypatch.setattr(Survey, "_reached", faulty)
    await the_world.look()
    assert await reason(the_world) == "NO_PILOT"


async def slots(world: World) -> list[int]:
    async with world.db.transaction() as tx:
        return [each.slots for each in await ad.fresh(tx)]


async def test_a_job_that_cannot_be_offered_keeps_nobody_elses_request_waiting(the_world: World) -> None:
    (large,) = await the_world.submitted()
    await the_world.sql(
        "update description set body = jsonb_set(body::jsonb, '{arguments}', jsonb_build_array(repeat('x', 960000)))::text::json"
    )
    (fine,) = await the_world.submitted(setup="other")
    await the_world.match(setup="default")
    answered = await the_world.match(setup="other")
    assert [job_id for job_id, _ in answered] == [fine]
    await the_world.expire(large)
    assert await the_world.state(large) == "Held"
    assert "TOO_LARGE" in await the_world.reasons(large)


async def enlarged(world: World, *, arguments: int, parameters: int) -> JobId:
    """Return a sweep's job that was stored when nothing bounded its offer: letters of an argument and of each parameter."""
    (job_id,) = await world.submitted(name="{text}", parameters={"text": ["short"]})
    async with world.db.transaction() as tx:
        await block.expand(tx, [job_id])
    await world.sql(
        "update description set body = jsonb_set(body::jsonb, '{arguments}', jsonb_build_array(repeat('x', $1::integer)))::text::json"
        " where description_id = (select description_id from job where job_id = $2)",
        arguments,
        job_id,
    )
    changed = await world.sql(
        "update job set parameters = (select jsonb_object_agg('p' || n, repeat('€', $1::integer)) from generate_series(1, 20) n)"
        " where job_id = $2 returning job_id",
        parameters,
        job_id,
    )
    assert changed, "it has a row of its own"
    return job_id


async def test_a_job_too_large_by_its_parameters_is_held(the_world: World) -> None:
    job_id = await enlarged(the_world, arguments=1_000, parameters=16_000)
    assert await the_world.match() == []
    await the_world.expire(job_id)
    assert await the_world.state(job_id) == "Held"
    assert "TOO_LARGE" in await the_world.reasons(job_id)


@pytest.mark.parametrize(("arguments", "parameters"), [(947_000, 10), (1_000, 15_750), (470_000, 7_900)])
async def test_a_large_job_that_can_be_offered_is_offered_again(
    the_world: World, arguments: int, parameters: int
) -> None:
    job_id = await enlarged(the_world, arguments=arguments, parameters=parameters)
    for _ in range(2):
        assert [each for each, _ in await the_world.match()] == [job_id]
        await the_world.expire(job_id)
        assert await the_world.state(job_id) == "Waiting"


async def test_a_job_too_large_to_be_offered_is_refused(the_world: World) -> None:
    names = [f"{n:03}" + "s" * 250 for n in range(1_000)]
    refused = await the_world.submit(
        {"executable": "x", "sites": names, "banned_sites": ["b" + n[1:] for n in names], "tags": names}
    )
    assert isinstance(refused, replies.Refused)
    assert "TOO_LARGE" in refused.details[0]
    assert "input sandbox" in refused.details[0]
