"""A fault in one element is that one's alone: the others are looked at, shown and used as if it were not there."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.services.world import World, user
from wms.db import ad
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
