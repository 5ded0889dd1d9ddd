"""Five hundred jobs on everything there is at once, while a node's daemon and the ARC service are killed; limits hold throughout."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import psutil
import pytest
import pytest_asyncio

from deploy.testbed.testbed import Testbed
from tests.middleware import Sites
from tests.testbed import occupancy
from tests.testbed.everywhere import KINDS, PILOTS, rows, system_everywhere
from tests.testbed.occupancy import Span
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, select
from wms.embedded.system import System
from wms.matching.limits import LimitRule

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.timeout(600)]

JOBS_AT_EACH, JOBS_ANYWHERE = 90, 140
SLOTS = 6
# The payload says itself how long it takes: from a tenth of a second to two.
PAYLOAD = "n=$(( $1 % 20 + 1 )); sleep $((n / 10)).$((n % 10)); echo $WMS_SITE"
LEASES = {"WMS_LEASE__LEASE_SECONDS": "20", "WMS_LEASE__OFFER_SECONDS": "10"}

LIMITS: dict[LimitRule, Callable[[Span], bool]] = {
    LimitRule(site="alpha", most=4): lambda span: span.site == "alpha",
    LimitRule(site="beta", ce="main", most=3): lambda span: (span.site, span.ce) == ("beta", "main"),
    LimitRule(site="arc", attribute="owner", value="*", most=3): lambda span: span.site == "arc",
    LimitRule(site="here", attribute="owner", value="*", most=2): lambda span: span.site == "here",
}
"""Of a site, of a computing element, of each owner (there is one): and what each of them counts."""

POLICY: dict[str, Any] = {"max_jobs": 7, "period_seconds": 3.0, "look_seconds": 1.0, "lifetime_seconds": 60.0}
"""The policy of the station `beta`, in its own file: its ads let come so many jobs less those that its batch system has then."""
NOTES = """
create table came (what text, site text, ce text, ad_at timestamptz, allowed integer);
create function note_what_came() returns trigger language plpgsql security definer as $$
begin
    insert into came
    select tg_table_name, new.site, new.ce, c.advertised_at, c.allowed from (select) as once
    left join limit_counter c on c.site = new.site and c.ce = new.ce and c.attribute = 'any' and c.value = '' and c.allowed is not null;
    return null;
end
$$;
create trigger note_what_came after insert on lease for each row execute function note_what_came();
create trigger note_what_came after insert on pilot for each row execute function note_what_came();
"""
"""Has the database note of each match and each pilot under which ad it came: who gives them has the counter locked by then.

The function runs as the owner of the schema, as the roles of services may not write to the table of a test.
"""


@pytest_asyncio.fixture(loop_scope="session")
async def system(testbed: Sites) -> AsyncIterator[System]:
    async with system_everywhere(
        testbed, environment=LEASES, slots=SLOTS, policies={"beta": POLICY}
    ) as running:
        yield running


def described(count: int, *sites: str) -> JobDescription:
    return JobDescription(
        executable="/bin/sh",
        arguments=("-c", PAYLOAD, "payload", "{n}"),
        sites=sites,
        cpu_time=60,
        array=count,
    )


async def done(client: Client, at_least: int) -> None:
    async def enough() -> bool:
        return (await client.counts(select(everything=True))).get("Done", 0) >= at_least

    await eventually(enough, within=180)


async def faults(testbed: Sites, client: Client, url: str) -> None:
    """Kill the daemon of a node on which a pilot works, then the ARC service; start both again while jobs go on."""
    bed = Testbed.at(testbed.root)
    alpha = bed.clusters["alpha"]

    def busy_node() -> str:
        return next(iter(alpha.run("squeue", "-h", "-t", "R", "-o", "%N").split()), "")

    async def at_work(site: str) -> bool:
        return bool(await rows(url, "select from pilot where site = $1 and busy > 0", site))

    await done(client, 40)
    await eventually(lambda: at_work("alpha"), within=60)
    node = await eventually(busy_node, within=60)
    alpha.kill_daemon(node)
    await done(client, 120)
    alpha.start_node(node)
    await eventually(lambda: at_work("arc"), within=90)
    bed.arc.kill_daemons()
    await done(client, 300)
    await asyncio.to_thread(bed.arc.start_daemons)


async def test_all_jobs_end_done_and_no_limit_is_passed_while_a_node_and_the_arc_service_are_killed(
    system: System, testbed: Sites
) -> None:
    assert system.facts is not None
    url = system.facts.postgres_url
    await execute(url, NOTES)
    await eventually(lambda: states_a_limit(url, "beta"), within=60)
    async with Client.connect(system.layout.root, timeout=60) as client:
        for limit in LIMITS:
            await client.set_limit(limit)
        submitted = await client.submit(
            [*(described(JOBS_AT_EACH, site) for site in KINDS), described(JOBS_ANYWHERE)]
        )
        disturbing = asyncio.create_task(faults(testbed, client, url))
        counts = await client.wait(submitted.selector(), timeout=330)
        await disturbing
    assert counts == {"Done": JOBS_AT_EACH * len(KINDS) + JOBS_ANYWHERE}
    await limits_held(url)
    await policy_held(url)
    assert (await audit(url)).ok
    await eventually(lambda: all_pilots_ended(url), within=180)
    # A pilot that ARC had handed on when it was killed is nobody's until it has found no work; and Slurm may not hear of the end of
    # one whose node's daemon was away, until we cancel it, again if need be.
    await eventually(lambda: nothing_left(testbed), within=PILOTS["lingering_seconds"] + 240)


async def limits_held(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        holds = await occupancy.spans(connection, occupancy.HOLDS)
        runs = await occupancy.spans(connection, occupancy.RUNS)
    finally:
        await connection.close()
    assert {span.site for span in runs} == set(KINDS)
    for limit, counted in LIMITS.items():
        held = occupancy.fullest(filter(counted, holds))
        ran = occupancy.fullest(filter(counted, runs))
        print(f"{limit.text()}: at most {held.number} held, {ran.number} ran")
        assert held.number == limit.most, (
            f"{limit.text()}: {held}; a limit that is never reached holds nothing back"
        )
        assert ran.number <= limit.most, f"{limit.text()}: {ran}"


async def states_a_limit(url: str, site: str) -> bool:
    return bool(await rows(url, "select from limit_counter where site = $1 and allowed is not null", site))


async def policy_held(url: str) -> None:
    """Under no ad of the station more came than it lets come, which is so at every instant if it is so at its end."""
    spans = await rows(
        url,
        """select what, ad_at, allowed, count(*) as number from came where site = 'beta'
        group by what, ad_at, allowed order by ad_at""",
    )
    assert all(span["allowed"] is not None for span in spans), "it has stated a limit from the beginning"
    passed = [dict(span) for span in spans if span["number"] > span["allowed"]]
    assert not passed
    matched = [span for span in spans if span["what"] == "lease"]
    full = [span for span in matched if span["number"] == span["allowed"]]
    print(f"{len(matched)} ads of beta let jobs come, {len(full)} of them no more than came")
    assert len(matched) > 5
    assert full, "a limit that is never reached holds nothing back"


async def execute(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


async def all_pilots_ended(url: str) -> bool:
    """Those that were on their way when their element was killed never came, and are known as such."""
    query = """select site, state, reason from pilot
        where ended_at is null or (state <> 'Done' and (seen_at is not null or site <> 'arc'))"""
    found = await rows(url, query)
    assert not found, found
    return True


def nothing_left(testbed: Sites) -> bool:
    left = {name: testbed.run(name, "squeue", "-h").strip() for name in ("alpha", "beta")}
    # A batch system may hold to a pilot that is gone, or a pilot to its place: who reads this wants to know which.
    assert not any(left.values()), (left, agents(testbed))
    return True


def agents(testbed: Sites) -> list[tuple[int, str]]:
    """Return the processes of job agents of this testbed that are still there, with what they are doing."""
    mine = [
        each
        for each in psutil.process_iter(["cmdline"])
        if "services.job_agent" in (each.info["cmdline"] or ())
    ]
    return [(each.pid, each.status()) for each in mine if str(testbed.root) in " ".join(each.info["cmdline"])]
