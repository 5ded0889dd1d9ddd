"""SAM-Grid's limits: what an ad lets come is never passed, by matches or by pilots, however many matchers and submitters there are."""

import asyncio
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from services.advertiser.site_rule import with_rule
from services.matcher import ads
from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.matcher.test_limit_gate import Matcher, asked, hear, patient
from tests.services.world import World, pilot, user
from tests.waiting import eventually
from wms.audit.auditor import audit
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import claim as db_claim
from wms.db import limit
from wms.db.claim import JobClaim
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.ids import CeId, PilotId, RequestId
from wms.matching.limits import LimitKey, LimitRule
from wms.messages import replies
from wms.messages.ads import Advertise, Withdraw
from wms.messages.queries import ListSites, WhyJob
from wms.provisioning.plan import PilotCaps
from wms.runtime.config import AuthSettings
from wms.site import ComputingElement

SIMPLE = "( CurrentJobs < MaxJobs )"
CURRENT = "( CurMatches < MaxJobs ) && (JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs) < MaxSubmittingJobs"
"""The two rules of SAM-Grid's paper, word for word."""
CE = LimitKey("A", "ce", "any", "")
BEGIN = datetime(2006, 3, 1, tzinfo=UTC)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def advertiser(site: str = "A") -> Principal:
    return Principal(
        kind="site",
        owner="advertiser",
        group="site",
        vo="",
        rights=frozenset({"advertise"}),
        site=site,
        token_id="t",
        expires_at=4e9,
    )


def said(
    at: float,
    requirements: str = "",
    ce: str = "ce",
    lifetime: float = 900.0,
    attributes: dict[str, Any] = {},  # noqa: B006 - nobody changes it
    **of: Any,
) -> Advertise:
    given: dict[str, Any] = {"setup": "default", "slots": 100, "max_cpu_time": 10**6, "memory_mb": 4_000}
    offered = ComputingElement(site="A", ce=ce, **(given | of))
    element, requirements = with_rule(offered, attributes, requirements)
    return Advertise(
        element=element,
        attributes=attributes,
        advertised_at=BEGIN + timedelta(seconds=at),
        lifetime_seconds=lifetime,
        requirements=requirements,
    )


async def advertise(world: World, *told: Advertise | Withdraw) -> None:
    async with world.db.transaction() as tx:
        await ads.handle(tx, [Delivery(advertiser(), each) for each in told])


async def counter(world: World) -> tuple[int | None, int, int]:
    """Return what the ad lets come, and the matches and pilots since, without those that were under way by then."""
    ((allowed, matched, sent),) = await world.sql(
        "select allowed, matched, sent - least(allowed, unseen + idle) as sent from limit_counter where site = 'A' and ce = 'ce' and attribute = 'any'"
    )
    return allowed, matched, sent


# --- one matcher ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["", CURRENT])
async def test_no_match_once_the_rule_is_not_true_until_a_new_ad(the_world: World, rule: str) -> None:
    await the_world.submitted(20)
    await advertise(the_world, said(0, rule, max_jobs=10, current_jobs=7, max_submitting_jobs=50))
    held = await the_world.match(slots=6)
    assert len(held) == 3, "MaxJobs - CurrentJobs"
    await the_world.report(decline=tuple(held))
    assert await hear(the_world) == [], "what ends makes no room: the ad counted it, or counts it next time"
    assert await the_world.match(pilot("p-2"), slots=6) == []
    await advertise(the_world, said(300, rule, max_jobs=10, max_submitting_jobs=5, current_submitting_jobs=3))
    assert await hear(the_world) == [CE]
    assert len(await the_world.match(pilot("p-3"), slots=6)) == 2, "MaxSubmittingJobs - CurrentSubmittingJobs"
    assert await counter(the_world) == (2, 2, 0)


async def test_the_simple_rule_of_the_paper_looks_at_the_ad_alone(the_world: World) -> None:
    await the_world.submitted(20)
    await advertise(the_world, said(0, SIMPLE, attributes={"MaxJobs": 10, "CurrentJobs": 10}))
    assert await the_world.match(slots=3) == []
    await advertise(the_world, said(300, SIMPLE, attributes={"MaxJobs": 10, "CurrentJobs": 9}))
    await hear(the_world)
    assert len(await the_world.match(pilot("p-2"), slots=6)) == 6, "matches do not count in it"


async def test_an_unchanged_ad_starts_the_count_anew_and_an_older_one_does_not(the_world: World) -> None:
    await the_world.submitted(20)
    await advertise(the_world, said(10, max_jobs=3))
    before = await the_world.sql("select received_at, expires_at from ad")
    assert len(await the_world.match(slots=9)) == 3
    await advertise(the_world, said(5, max_jobs=9))
    assert await hear(the_world) == []
    await advertise(the_world, said(310, max_jobs=3))
    assert await hear(the_world) == [CE]
    after = await the_world.sql("select received_at, expires_at from ad")
    assert after[0]["received_at"] == before[0]["received_at"], "it only lives on"
    assert after[0]["expires_at"] > before[0]["expires_at"]
    assert len(await the_world.match(pilot("p-2"), slots=9)) == 3


@pytest.mark.parametrize("how", ["expired", "withdrawn"])
async def test_an_ad_is_forgotten_after_its_life(the_world: World, how: str) -> None:
    await the_world.submitted(9)
    await advertise(the_world, said(0, max_jobs=5))
    if how == "expired":
        await the_world.sql("update limit_counter set allowed_until = now() - interval '1 s'")
    else:
        await advertise(the_world, Withdraw(site="A", ce="ce", advertised_at=BEGIN + timedelta(seconds=1)))
    assert await the_world.match(slots=3) == []
    await advertise(the_world, said(300, max_jobs=5))
    await hear(the_world)
    assert len(await the_world.match(pilot("p-2"), slots=3)) == 3


async def test_elements_whose_ads_state_no_limit_cost_nothing(the_world: World) -> None:
    await the_world.submitted(4)
    await advertise(the_world, said(0))
    assert len(await the_world.match(slots=4)) == 4
    assert await the_world.sql("select 1 from limit_counter") == []
    assert await the_world.sql("select 1 from lease where counted is not null") == []


async def test_a_limit_stated_later_holds_though_nobody_is_told(the_world: World) -> None:
    """Of an element that the matcher knows as one without limits; nothing is refreshed, and no word heard."""
    await the_world.submitted(20)
    await advertise(the_world, said(0))
    assert len(await the_world.match(slots=2)) == 2
    await advertise(the_world, said(300, max_jobs=2))
    assert len(await the_world.match(pilot("p-2"), slots=9)) == 2
    assert await counter(the_world) == (2, 2, 0)
    await advertise(the_world, said(600))
    await hear(the_world)
    assert len(await the_world.match(pilot("p-3"), slots=4)) == 4, "it states none any more"
    await advertise(the_world, said(900, max_jobs=1))
    assert len(await the_world.match(pilot("p-4"), slots=4)) == 1, "and again"


async def test_with_a_limit_of_another_kind_an_ads_is_not_missed_either(the_world: World) -> None:
    await the_world.submitted(20)
    async with the_world.db.transaction() as tx:
        await limit.set_limit(tx, LimitRule(site="A", attribute="owner", value="*", most=9), "oz")
    await the_world.rules.refresh()
    await advertise(the_world, said(0))
    assert len(await the_world.match(slots=2)) == 2
    await advertise(the_world, said(300, max_jobs=3))
    assert len(await the_world.match(pilot("p-2"), slots=9)) == 3
    await advertise(the_world, said(600, max_jobs=9))
    await hear(the_world)
    assert len(await the_world.match(pilot("p-3"), slots=9)) == 4, "nine of the owner in all"


async def waits_for_a_lock(world: World) -> bool:
    return bool(await world.sql("select from pg_locks where locktype = 'advisory' and not granted"))


async def test_a_claim_waits_for_an_ad_that_is_being_written(the_world: World) -> None:
    await the_world.submitted(9)
    await advertise(the_world, said(0))
    matcher = Matcher(the_world, 1)
    who = await the_world.add_pilot(pilot("p-2"))
    assert len(await asked(the_world, matcher, 1, who)) == 1
    async with the_world.db.transaction() as tx:
        await ads.handle(tx, [Delivery(advertiser(), said(300, max_jobs=2))])
        claiming = asyncio.create_task(asked(the_world, matcher, 5, who))
        await eventually(lambda: waits_for_a_lock(the_world))
        assert not claiming.done()
    assert len(await claiming) == 2
    assert (await audit(the_world.url)).ok


async def test_an_ad_waits_for_the_claims_that_do_not_know_it(the_world: World) -> None:
    await the_world.submitted(9)
    await advertise(the_world, said(0))
    await the_world.match(slots=1)
    async with the_world.db.transaction() as tx:
        known = await limit.advertising(tx)
        (waiting, *_) = await tx.fetch("select job_id, tq_id from job where state = 'Waiting'")
        claim = JobClaim(waiting["job_id"], PilotId("p-1"), RequestId("r-late"), "A", "ce", waiting["tq_id"])
        assert await db_claim.claim(tx, [claim], 30.0, known.generation)
        advertising = asyncio.create_task(advertise(the_world, said(300, max_jobs=1)))
        await eventually(lambda: waits_for_a_lock(the_world))
        assert not advertising.done()
    await advertising
    assert len(await the_world.match(pilot("p-2"), slots=5)) == 1
    assert (await audit(the_world.url)).ok, "what was given before is not counted by the ad"


async def test_with_an_operators_limit_both_hold(the_world: World) -> None:
    await the_world.submitted(9)
    async with the_world.db.transaction() as tx:
        await limit.set_limit(tx, LimitRule(site="A", ce="ce", most=2), "oz")
    await the_world.rules.refresh()
    await advertise(the_world, said(0, max_jobs=3))
    held = await the_world.match(slots=9)
    assert len(held) == 2
    await the_world.report(decline=tuple(held))
    await hear(the_world)
    assert len(await the_world.match(pilot("p-2"), slots=9)) == 1
    assert await counter(the_world) == (3, 3, 0)


async def test_an_ad_whose_rule_cannot_be_read_is_refused(the_world: World) -> None:
    await advertise(the_world, said(0, max_jobs=3, rule="CurMatches <"))
    assert await the_world.sql("select 1 from ad") == []


async def test_an_ad_whose_requirements_look_at_counts_is_refused(the_world: World) -> None:
    await advertise(the_world, replace(said(0, max_jobs=3), requirements="CurMatches < MaxJobs"))
    assert await the_world.sql("select 1 from ad") == []


# --- many matchers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "of"),
    [
        ("", {"max_jobs": 8, "current_jobs": 1}),
        (CURRENT, {"max_jobs": 40, "max_submitting_jobs": 9, "current_submitting_jobs": 2}),
        ("CurMatches < MaxJobs - 3 && JobsMatchedSinceLastAdvertisement != 7", {"max_jobs": 20}),
    ],
)
async def test_four_matchers_never_pass_what_an_ad_lets_come(the_world: World, rule: str, of: Any) -> None:
    """Ads come while they claim and jobs end; each ad lets seven come, and seven come."""
    rng = random.Random(len(rule))
    for owner in ("ann", "bob"):
        await the_world.submit({"array": 60}, who=user(owner))
    who = [await the_world.add_pilot(pilot(f"p-{n}")) for n in range(4)]
    await advertise(the_world, said(0, rule, **of))
    matchers = [Matcher(the_world, n) for n in range(4)]
    claims = asyncio.Queue[int]()
    spans: list[int] = []

    async def claim(n: int, matcher: Matcher) -> None:
        for _ in range(8):
            held = await patient(partial(asked, the_world, matcher, rng.randint(1, 3), who[n]))
            claims.put_nowait(len(held))
            if rng.random() < 0.5:
                await patient(partial(the_world.report, who[n], decline=tuple(held)))

    for span in range(1, 4):
        async with asyncio.TaskGroup() as group:
            for n, each in enumerate(matchers):
                group.create_task(claim(n, each))
        spans.append(sum(claims.get_nowait() for _ in range(claims.qsize())))
        assert await counter(the_world) == (7, 7, 0)
        report = await audit(the_world.url)
        assert [each for each in report.checks if each.invariant == 10 and each.violations] == []
        await advertise(the_world, said(300 * span, rule, **of))
        await hear(the_world, *(each.gate for each in matchers))
    assert spans == [7, 7, 7]


async def test_ads_that_come_while_matchers_claim_begin_a_count_each(the_world: World) -> None:
    """Between any two ads no more is matched than the first lets come, by the history alone."""
    await the_world.submit({"array": 200})
    who = [await the_world.add_pilot(pilot(f"p-{n}")) for n in range(4)]
    await advertise(the_world, said(0, max_jobs=4))
    matchers = [Matcher(the_world, n) for n in range(4)]
    done = asyncio.Event()

    async def claim(n: int, matcher: Matcher) -> None:
        while not done.is_set():
            await patient(partial(asked, the_world, matcher, 2, who[n]))

    async def advertise_again() -> None:
        for span in range(1, 8):
            reached: list[Any] = []
            while not reached:
                reached = await the_world.sql("select 1 from limit_counter where matched = 4")
            await patient(partial(advertise, the_world, said(300 * span, max_jobs=4)))
            await hear(the_world, *(each.gate for each in matchers))
        done.set()

    async with asyncio.TaskGroup() as group:
        for n, each in enumerate(matchers):
            group.create_task(claim(n, each))
        group.create_task(advertise_again())
    total = len(await the_world.sql("select 1 from attempt"))
    assert 7 * 4 <= total <= 8 * 4, "each ad let four come, and the last may not have been used up"
    assert (await audit(the_world.url)).ok


async def test_the_database_itself_refuses_one_match_too_many(the_world: World) -> None:
    await advertise(the_world, said(0, max_jobs=4))
    for column in ("matched", "sent"):
        with pytest.raises(asyncpg.CheckViolationError):
            await the_world.sql(f"update limit_counter set {column} = 5")


async def test_elements_that_begin_to_state_limits_while_matchers_claim_get_no_more_than_these(
    the_world: World,
) -> None:
    """They begin and cease to, again and again, and no matcher hears a word."""
    await the_world.submit({"array": 500})
    who = [await the_world.add_pilot(pilot(f"p-{n}")) for n in range(3)]
    matchers = [Matcher(the_world, n) for n in range(3)]
    done = asyncio.Event()

    async def claim(n: int, matcher: Matcher) -> None:
        while not done.is_set():
            held = await patient(partial(asked, the_world, matcher, 2, who[n]))
            await patient(partial(the_world.report, who[n], decline=tuple(held)))
            matcher.gate.open_roomy({})

    async def begin_and_cease() -> None:
        for span in range(1, 11):
            before = len(await the_world.sql("select from attempt"))
            await patient(partial(advertise, the_world, said(600 * span)))
            while len(await the_world.sql("select from attempt")) < before + 4:
                await asyncio.sleep(0)
            await patient(partial(advertise, the_world, said(600 * span + 300, max_jobs=3)))
            while (await counter(the_world))[1] < 3:
                await asyncio.sleep(0)
            found = [each for each in (await audit(the_world.url)).checks if each.invariant == 10]
            assert [each for each in found if each.violations] == []
        done.set()

    async with asyncio.TaskGroup() as group:
        for n, each in enumerate(matchers):
            group.create_task(claim(n, each))
        group.create_task(begin_and_cease())


async def test_the_audit_finds_what_no_counter_tells(the_world: World) -> None:
    """Matches that nobody counted are in the history all the same."""
    await the_world.submitted(5)
    await advertise(the_world, said(0))
    assert len(await the_world.match(slots=3)) == 3
    await advertise(the_world, said(300, max_jobs=1))
    await the_world.sql("update limit_counter set advertised_at = '-infinity'")
    broken = [each for each in (await audit(the_world.url)).checks if each.violations]
    assert [(each.invariant, "3 jobs matched" in each.violations[0]) for each in broken] == [(10, True)]


# --- pilots ---------------------------------------------------------------------------------------


class Taker:
    """Stands for a middleware that takes every pilot; none of them ever runs."""

    def __init__(self) -> None:
        self.sent: list[PilotRequest] = []

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        self.sent += orders
        return [PilotSighting(pilot_id=each.pilot_id, state="Submitted") for each in orders]

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        return [PilotSighting(pilot_id=each, state="Submitted") for each in pilot_ids]

    async def alive(self) -> list[PilotId]:
        return [each.pilot_id for each in self.sent]

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[Any]:
        return []

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        return None

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        return None


def submitter(world: World, folder: Path, taker: Taker) -> Provisioning:
    keys = folder / "keys"
    if not keys.exists():
        generate_keys(keys)
    pilots = PilotFactorySettings(directory=str(folder / "pilots"), keys=str(keys))
    config = Config(
        auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
    )
    endpoints = CeEndpoints(taker, time.monotonic, local_sites=["*"])
    maker = PilotFactory(config, load_key(keys / "pilots.pem"), OrderKeys([b"k" * 32]))
    return Provisioning(world.db, endpoints, maker, PilotCaps(), PilotTracking(world.db, endpoints))


async def test_submitters_send_no_more_pilots_than_the_ad_lets_come(the_world: World, tmp_path: Path) -> None:
    await the_world.submit({"array": 50})
    await advertise(the_world, said(0, max_jobs=12, current_jobs=5))
    taker = Taker()

    async def sent() -> int:
        for _ in range(2):
            # New ones: who planned rests for as long as it took.
            submitters = [submitter(the_world, tmp_path, taker) for _ in range(3)]
            await asyncio.gather(*(each.provide() for each in submitters))
        assert (await audit(the_world.url)).ok
        return len(taker.sent)

    assert await sent() == 7
    assert await counter(the_world) == (7, 0, 7)
    await advertise(the_world, said(300, max_jobs=12, current_jobs=5))
    assert await sent() == 7, "the ad's source has not seen those that are under way"
    await the_world.sql("update pilot set state = 'Waiting', submitted_at = $1", BEGIN)
    await advertise(the_world, said(600, max_jobs=12, current_jobs=12))
    assert await sent() == 7, "now it has"
    await the_world.sql(
        "update pilot set state = 'Done', ended_at = now() where pilot_id in (select pilot_id from pilot limit 4)"
    )
    assert await sent() == 7, "what ends makes no room before the next ad"
    await advertise(the_world, said(900, max_jobs=12, current_jobs=8))
    assert await sent() == 11


async def test_submitters_that_plan_at_once_are_counted_when_they_write(the_world: World) -> None:
    """Whoever planned by numbers that another has used up since writes no more than is left."""
    await advertise(the_world, said(0, max_jobs=5))

    async def write(wanted: int) -> int:
        async with the_world.db.transaction() as tx:
            granted = await limit.count_pilots(tx, {CeId("A", "ce"): wanted, CeId("A", "free"): wanted})
        assert granted.keys() == {("A", "ce")}, "the other states no limit"
        return granted[CeId("A", "ce")]

    assert sorted(await asyncio.gather(*(write(2) for _ in range(4)))) == [0, 1, 2, 2]
    assert await counter(the_world) == (5, 0, 5)


# --- words ----------------------------------------------------------------------------------------


async def site_notices(world: World) -> dict[str, tuple[str, ...]]:
    reply = await world.ask(user(), ListSites(query_id="q"))
    assert isinstance(reply, replies.Sites)
    return {each.ce: each.notices for each in reply.sites}


async def test_suppress_delay_and_avoid_are_said_with_numbers(the_world: World) -> None:
    await the_world.submitted(3)
    elements: dict[str, dict[str, Any]] = {
        "ce": {"max_jobs": 40, "current_jobs": 39},
        "slow": {"max_submitting_jobs": 5, "current_submitting_jobs": 5},
        "bad": {},
    }
    for ce, of in elements.items():
        await advertise(the_world, said(0, ce=ce, **of))
    for n in range(4):
        await the_world.sql(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, state, ended_at)"
            " values ($1, 'A', 'bad', 'lhcb', 'local', 1, $2, now())",
            f"p-bad-{n}",
            "Failed" if n else "Done",
        )
    assert len(await the_world.match(slots=2)) == 1
    told = await site_notices(the_world)
    assert told["ce"] == ("suppress: 40 of 40 jobs (MaxJobs)",)
    assert told["slow"][0] == "delay: 5 of 5 jobs being submitted (MaxSubmittingJobs)"
    assert told["bad"] == ("avoid: 3 of 4 pilots died unseen within the hour",)
    waiting = next(
        each for each in (await the_world.sql("select job_id from job where state = 'Waiting' limit 1"))
    )["job_id"]
    why = await the_world.ask(user(), WhyJob(query_id="q", job_id=waiting))
    said_of = {each.ce: (each.limits, each.avoid) for each in why.elements}
    assert said_of == {
        "ce": (("suppress: 40 of 40 jobs (MaxJobs)",), ""),
        "slow": (("delay: 5 of 5 jobs being submitted (MaxSubmittingJobs)",), ""),
        "bad": ((), "avoid: 3 of 4 pilots died unseen within the hour"),
    }
    await advertise(the_world, Withdraw(site="A", ce="bad", advertised_at=BEGIN + timedelta(seconds=1)))
    why = await the_world.ask(user(), WhyJob(query_id="q", job_id=waiting))
    assert why.code == "HELD_BY_LIMIT"
    assert "suppress: 40 of 40" in why.summary or "delay: 5 of 5" in why.summary
