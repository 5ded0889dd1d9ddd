"""A bit of everything that may happen to jobs, for the auditor to look at."""

from datetime import UTC, datetime, timedelta

from tests.services.agreement.offered import terms
from tests.services.agreement.site import Site
from tests.services.placing import BROKERED, bound, placed
from tests.services.world import World, pilot, result, user
from wms.db import block, ce_state, limit, placement, usage_hour
from wms.db.limit import AdAllowance
from wms.db.placement import NewPlacement
from wms.ids import CeId
from wms.job.job import HANDOUT_LIMIT
from wms.job.reasons import Code
from wms.matching.limits import LimitRule
from wms.provisioning.health import Event, HealthChange, HealthPolicy

HOUR = 3_600.0
LATER = datetime.now(UTC) + timedelta(hours=1)


async def live(one: World) -> None:
    """A bit of everything that may happen to jobs; their ids are 1 to 10, and 11 to 1,210 of a sweep."""
    ann, bob = user(), user("bob", vo="atlas", group="higgs")
    async with one.db.transaction() as tx:
        await limit.set_limit(tx, LimitRule(site="*", attribute="tag", value="4Processors", most=3), "oz")
    await one.rules.refresh()
    await one.submit(*[{}] * 6, who=ann, command_id="a")
    await one.submit({"executable": "/bin/sh", "sites": ["A"], "tags": ["gpu"], "memory_mb": 9}, who=bob)
    held = await one.match(pilot(), 5)
    await one.submit({"banned_sites": ["B"], "processors": 4}, {"max_attempts": 1}, {}, who=ann)
    await one.report(pilot(), accept=tuple(held), start=tuple(held))
    done, failed, lost, killed, again = held
    await one.report(pilot(), finish=(result(done), result(failed, "failed", Code.EXIT_CODE, exit_code=3)))
    await one.order("kill", killed[0])
    await one.order("reschedule", again[0])
    await one.report(
        pilot(), finish=tuple(result(each, "killed", Code.KILLED_BY_USER) for each in (killed, again))
    )
    await one.expire(lost[0])
    (offered,) = await one.match(pilot("p-2"), 1)
    await one.expire(offered[0])
    await one.order("reschedule", failed[0])
    running = await one.match(pilot("p-3"), 12)
    await one.order("hold", *range(1, 11))
    await one.report(pilot("p-3"), accept=tuple(running), start=tuple(running))
    await one.order("kill", running[0][0])
    ids = await one.swept(1_200)
    await one.order("hold", *ids[:10])
    picky = {"requirements": "other.Disks > my.Needs", "rank": "other.Disks", "attributes": {"Needs": 2}}
    await one.submit(picky, who=bob)
    async with one.db.transaction() as tx:
        await block.expand(tx, [ids[10]])
        await limit.advertise(tx, {CeId("A", "ce"): AdAllowance(1_000, 900.0)})
        events: tuple[Event, ...] = ("eat", "probe", "relapse", "ban", "ban")
        for event in events:
            await ce_state.move(
                tx, CeId("A", "ce"), HealthChange(event, f"why {event}", "oz"), HealthPolicy()
            )
        await ce_state.move(
            tx, CeId("B", "ce"), HealthChange("recover", "nothing ever failed", "oz"), HealthPolicy()
        )
    await lost_before_it_began(one)
    await brokered(one)
    await coallocated(one)
    await reserved(one)
    await accounted(one)


async def brokered(one: World) -> None:
    """A job that the broker is to place, and one that it has placed."""
    reply = await one.submit(BROKERED, BROKERED, who=user("dan", vo="cms"))
    placed_id = reply.ids[0][1]
    assert await placed(one, placed_id)
    mine = await bound(one, placed_id)
    await one.sql(
        "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, job_id) values ($1, 'A', 'ce', 'cms', 'local', 1, $2)",
        mine.pilot_id,
        placed_id,
    )


async def coallocated(one: World) -> None:
    """Two jobs that wait to start together, and one that waits until the broker sees that its companion is held."""
    for held in (False, True):
        ids = await one.swept(2, coallocate=True, preferences={})
        slots = [
            NewPlacement(job_id=each, site=site, ce="ce", agreement_id=f"{each}-{site}", start_at=LATER)
            for each, site in zip(ids, "AB", strict=True)
        ]
        async with one.db.transaction() as tx:
            await placement.order(tx, slots, "resource_broker")
        if held:
            await one.order("hold", ids[1])


async def reserved(one: World) -> None:
    """Offers to a site with four CPUs: one confirmed, one temporary, one denied."""
    site = Site(one)
    job_id = 6
    await site.reserve(*(terms(job_id, f"a-{n}") for n in range(3)), terms(job_id, "a-3", cpus=9))
    await site.confirm("a-0")


async def lost_before_it_began(one: World) -> None:
    """A job that ends its pilots before it begins, and one that its user holds."""
    eve = user("eve", vo="cms")
    reply = await one.submit({}, {}, who=eve)
    await one.order("hold", reply.ids[0][1], who=eve)
    ender = pilot("p-4", vo="cms", site="Z")
    for _ in range(HANDOUT_LIMIT):
        held = await one.match(ender, 1)
        await one.report(ender, accept=tuple(held))
        lost = tuple(result(each, "lost", Code.AGENT_ERROR, began=False) for each in held)
        await one.report(ender, finish=lost)
    await one.submit({"after": [reply.ids[0][1]]}, who=eve)


async def accounted(one: World) -> None:
    """What ended is summed up, as it is when the hour is over."""
    async with one.db.transaction() as tx:
        await tx.execute(
            "update usage_rollup set began_at = began_at - interval '2 h', closed_until = began_at - interval '2 h'"
        )
        assert await usage_hour.close(tx, late_seconds=-HOUR)
