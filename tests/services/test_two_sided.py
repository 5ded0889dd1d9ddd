"""Both sides' expressions from a submission and an advertisement to a match, and to what users are told of them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from services.matcher import ads
from tests.services.world import World, pilot, user
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import ce_endpoint
from wms.dispatch.forwarding import HostRequestTerms
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.ads import Advertise
from wms.messages.commands import Submit
from wms.messages.queries import WhyJob
from wms.site import ComputingElement

pytestmark = pytest.mark.asyncio(loop_scope="session")


ELEMENT = ComputingElement(site="A", ce="ce", setup="default", slots=4, max_cpu_time=10**6, memory_mb=4_000)


def site_principal(site: str = "A") -> Principal:
    return Principal(
        kind="site", owner="admin", group="site", vo="", rights=frozenset(), site=site, token_id="t", expires_at=4e9
    )  # fmt: skip


async def advertise(world: World, *, disk_mb: int = 0, **said: Any) -> None:
    element = msgspec.structs.replace(ELEMENT, disk_mb=disk_mb)
    message = Advertise(element=element, advertised_at=datetime.now(UTC), **said)
    async with world.db.transaction() as tx:
        await ads.handle(tx, [Delivery(site_principal(), message)])


async def match(world: World, site: str = "A", node: dict[str, Any] | None = None) -> list[int]:
    """What a pilot at a site is given, by the ads that are known now and what it tells of its node."""
    await ads.AdSync(world.db, world.index).refresh()
    told = tuple(sorted((node or {}).items()))
    return [job_id for job_id, _ in await world.match(pilot(f"p-{site}", site=site), node=told)]


async def why(world: World, job_id: int) -> replies.JobWhy:
    reply = await world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    assert isinstance(reply, replies.JobWhy), reply
    return reply


async def test_a_job_goes_where_the_ad_of_the_pilots_element_is_as_it_requires(the_world: World) -> None:
    [job_id] = await the_world.submitted(requirements="other.Disks > my.Needs", attributes={"Needs": 2})
    assert not await match(the_world)
    await advertise(the_world, attributes={"Disks": 3})
    # By the site and element of the token: at another site the same element's name is another's.
    assert not await match(the_world, "B")
    assert await match(the_world) == [job_id]


async def test_a_site_gets_the_jobs_that_it_requires_and_likes_most(the_world: World) -> None:
    others = await the_world.submitted(2, job_type="Test")
    [plain] = await the_world.submitted(attributes={"Urgency": 1})
    [urgent] = await the_world.submitted(attributes={"Urgency": 7})
    await advertise(the_world, requirements='other.JobType != "Test"', rank="other.Urgency")
    assert await match(the_world) == [urgent]
    assert await match(the_world) == [plain]
    assert not await match(the_world)
    await advertise(the_world)
    assert set(await match(the_world)) < set(others)


SOFTWARE = "GlueHostApplicationSoftwareRunTimeEnvironment"


PICKY = f'other.Disks > 2 && other.GlueHostMainMemoryRAMSize >= 8000 && member("avx512", other.{SOFTWARE})'


async def forwarding(world: World) -> None:
    """Write down an endpoint through which hosts are asked for, as the pilot submitter does."""
    asks = HostRequestTerms(kind="slurm", rules={SOFTWARE: "--constraint={value}"})
    forwards = ",".join(sorted(asks.mapping().forwarded))
    async with world.db.transaction() as tx:
        await ce_endpoint.write(
            tx, [ce_endpoint.EndpointRow("A", "ce", forwards, msgspec.json.encode(asks).decode())]
        )


async def test_a_job_goes_to_the_pilot_whose_node_is_as_it_requires_and_to_no_other(the_world: World) -> None:
    await forwarding(the_world)
    await advertise(the_world, attributes={"Disks": 3, "GlueHostMainMemoryRAMSize": 4_000})
    foreseen = await the_world.submit({"requirements": PICKY})
    assert not foreseen.warnings, "such a host can be asked for"
    job_id = foreseen.ids[0][0]
    nodes: list[dict[str, Any]] = [
        {},
        {"gluehostmainmemoryramsize": 8_000},
        {"gluehostmainmemoryramsize": 7_999, SOFTWARE.lower(): ("avx512",)},
    ]
    for node in nodes:
        assert not await match(the_world, node=node)
    assert await match(
        the_world, node={"gluehostmainmemoryramsize": 8_000, SOFTWARE.lower(): ("avx512",)}
    ) == [job_id]
    [plain] = await the_world.submitted()
    assert await match(the_world, node={"gluehostmainmemoryramsize": 64_000}) == [plain]


async def test_why_says_who_decides_which_part_of_what_a_job_requires(the_world: World) -> None:
    await forwarding(the_world)
    await advertise(the_world, attributes={"Disks": 3, "GlueHostMainMemoryRAMSize": 4_000})
    [job_id] = await the_world.submitted(requirements=f"{PICKY} && other.GPUNumber != 7")
    [element] = (await why(the_world, job_id)).elements
    assert element.fits
    assert element.decided == ("other.disks > 2",)
    assert element.forwarded == (
        "gluehostmainmemoryramsize >= 8000 as --mem=8000M",
        f'{SOFTWARE.lower()} has "avx512" as --constraint=avx512',
    )
    assert element.on_node == ("other.gpunumber != 7: != says what a host is not, or reckons",)
    await the_world.sql("delete from ce_door")
    [element] = (await why(the_world, job_id)).elements
    assert not element.fits
    assert not element.forwarded


async def test_why_names_the_conjunct_of_either_side_and_what_would_do(the_world: World) -> None:
    wanted: dict[str, Any] = {"requirements": 'other.Disks > 5 && other.Site == "A"', "rank": "other.Disks"}
    [job_id] = await the_world.submitted(**wanted)
    await advertise(the_world, attributes={"Disks": 3})
    said = await why(the_world, job_id)
    assert said.code == "NEVER_POSSIBLE"
    [element] = said.elements
    assert element.clauses == ("requirements: other.disks > 5 is false where other.disks = 3",)
    [relaxation] = said.relaxations
    assert relaxation.changes == ("requirements without other.disks > 5",)
    assert relaxation.slots == 4
    await advertise(the_world, attributes={"Disks": 9}, requirements='other.Owner == "bob"')
    [element] = (await why(the_world, job_id)).elements
    assert element.clauses == ('site requirements: other.owner == "bob" is false where other.owner = "ann"',)
    assert element.rank is None
    await advertise(the_world, attributes={"Disks": 9})
    assert [each.rank for each in (await why(the_world, job_id)).elements] == [9.0]


async def test_what_no_ad_can_meet_is_foreseen_at_the_submission(the_world: World) -> None:
    await advertise(the_world, attributes={"Disks": 3})
    foreseen = await the_world.submit({"requirements": "other.Disks > 5"})
    assert "requirements without other.disks > 5" in foreseen.warnings[0]
    job = msgspec.Raw(b'{"executable":"/bin/true","requirements":"other.Disks > 5"}')
    [refused] = await the_world.command(
        user(), Submit(command_id=CommandId("strict"), jobs=(job,), strict=True)
    )
    assert isinstance(refused, replies.Refused)
    await advertise(the_world, attributes={"Disks": 6})
    assert not (await the_world.submit({"requirements": "other.Disks > 5"})).warnings


async def test_jobs_that_differ_in_how_a_requirement_is_written_share_a_queue(the_world: World) -> None:
    texts = ("other.Disks>2 && other.a", "TARGET.disks > 2&&(OTHER.A)", "other.Disks > 3 && other.a")
    job_ids = [job_id for text in texts for job_id in await the_world.submitted(requirements=text)]
    rows = await the_world.sql("select tq_id from job where job_id = any ($1) order by job_id", job_ids)
    first, same, other = (row["tq_id"] for row in rows)
    assert first == same != other
