"""No list is too long for a message, whatever others have put into it; and an element can be forgotten."""

from typing import Any

import msgspec
import pytest

from tests.services.world import World, result, user, world
from wms.messages import queries as asked
from wms.messages.commands import Selector
from wms.messages.wire import PAYLOAD_LIMIT

AD = """insert into ad (site, ce, element, advertised_at, expires_at)
    select $1, format('ce%s', n), jsonb_build_object('site', $1::text, 'ce', format('ce%s', n), 'slots', 7, 'max_cpu_time', 1000,
        'dispatcher', 'slurm', 'note', repeat('x', $3)), now(), now() + interval '1 h' from generate_series(1, $2) as n"""


async def pages(place: World, query: type[asked.PagedQuery], **more: Any) -> list[Any]:
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        reply = await place.ask(user("oz", "operator"), query(query_id="q", after=after, **more))
        assert len(msgspec.json.encode(reply)) < PAYLOAD_LIMIT
        found.append(reply)
        after = reply.after
    return found


async def test_large_ads_break_nobodys_list_of_sites(database: str) -> None:
    async with world(database) as place:
        await place.sql(AD, "Z", 12, 440_000)
        await place.sql(AD, "A", 1, 10)
        (reply,) = await pages(place, asked.ListSites)
        assert [each.site for each in reply.sites] == ["A", *["Z"] * 12]
        assert reply.sites[0].ad["note"] == "x" * 10
        assert reply.sites[1].ad["slots"] == 7
        assert "note" not in reply.sites[1].ad
        assert reply.sites[1].ad["omitted_bytes"] > 440_000
        whole = await place.ask(user(), asked.ShowSite(query_id="q", site="Z", ce="ce3"))
        assert len(whole.elements[0].ad["note"]) == 440_000
        many = await place.ask(user(), asked.ShowSite(query_id="q", site="Z"))
        assert len(many.elements) == 12


async def test_many_ads_come_by_pages(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(database) as place:
        await place.sql(AD, "Z", 60, 30_000)
        found = await pages(place, asked.ListSites)
        assert len(found) == 3
        names = [each.ce for reply in found for each in reply.sites]
        assert len(set(names)) == len(names) == 60


async def test_pilots_and_queues_come_by_pages(database: str) -> None:
    async with world(database) as place:
        await place.sql(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, reason)"
            " select format('p-%s', n), 'A', 'ce', 'lhcb', 'local', 1, repeat('r', 900) from generate_series(1, 1500) as n"
        )
        found = await pages(place, asked.ListPilots)
        names = [each.pilot_id for reply in found for each in reply.pilots]
        assert len(found) >= 3
        assert len(set(names)) == len(names) == 1_500
        for number in range(5):
            await place.submit({"cpu_time": 600}, who=user(f"owner{number}"))
        found = await pages(place, asked.ListQueues, limit=2)
        assert [len(reply.queues) for reply in found] == [2, 2, 1]


async def test_how_jobs_went_is_told_on_demand_to_who_may_see_their_details(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.report(finish=(result(held, exit_code=0),))
    listing = asked.ListJobs(query_id="q", selector=Selector(everything=True), results=True)
    seen = {}
    for who in (user(), user("mia", "job_monitor", group="other")):
        (line,) = (await the_world.ask(who, listing)).jobs
        seen[who.owner] = line.result and line.result.exit_code
    assert seen == {"ann": 0, "mia": None}
    (line,) = (await the_world.ask(user(), msgspec.structs.replace(listing, results=False))).jobs
    assert line.result is None
