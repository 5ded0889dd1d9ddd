"""Limits on waiting jobs: what would make too many wait is refused with the numbers, however many ask at once."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from services.job_manager.commands import Commands
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from tests.services.world import World, pilot, user
from wms.bus.consumer import Delivery
from wms.db import limit
from wms.ids import CommandId
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.matching.limits import LimitRule
from wms.messages import replies
from wms.messages.commands import Command, Submit


async def ruled(world: World, most: int, attribute: Any = "owner", value: str = "*") -> None:
    async with world.db.transaction() as tx:
        said = LimitRule(kind="waiting", attribute=attribute, value=value, most=most)
        await limit.set_limit(tx, said, "oz")
    await world.admission.refresh()


async def long_known(world: World) -> None:
    """Let the limits have come long ago, and rooms have been counted a while ago."""
    await world.sql("update limit_rule set said_at = said_at - interval '1 h'")
    await world.sql("update waiting_room set counted_at = counted_at - interval '5 s'")
    await world.admission.refresh()


async def waiting(world: World) -> int:
    rows = await world.sql("select coalesce(sum(jobs), 0)::bigint as jobs from waiting")
    return int(rows[0]["jobs"])


def refused(answer: Any) -> str:
    assert isinstance(answer, replies.Refused), answer
    assert (answer.code, "wms limits" in answer.remedy) == ("WAITING_LIMIT", True)
    return answer.message


async def test_a_sweep_counts_as_its_jobs(the_world: World) -> None:
    await ruled(the_world, 1_000)
    said = refused(await the_world.submit({"array": 1_001}))
    assert said == "1,001 more would make 1,001 jobs of owner ann wait; the limit is 1,000"
    await the_world.submit({"array": 990}, {}, {})
    said = refused(await the_world.submit({"array": 9}))
    assert said == "9 more would make 1,001 jobs of owner ann wait; the limit is 1,000"
    assert isinstance(await the_world.submit({"array": 8}), replies.Submitted)
    assert await waiting(the_world) == 1_000
    assert isinstance(await the_world.submit(who=user("bob")), replies.Submitted), "each owner by itself"


async def test_what_was_refused_was_not_taken_and_may_come_again(the_world: World) -> None:
    await ruled(the_world, 2)
    refused(await the_world.submit({"array": 3}, command_id="c"))
    await ruled(the_world, 3)
    answer = await the_world.submit({"array": 3}, command_id="c")
    assert isinstance(answer, replies.Submitted)
    assert not answer.repeated
    again = await the_world.submit({"array": 3}, command_id="c")
    assert (again.ids, again.repeated) == (answer.ids, True), "what was taken before is no new job"


@pytest.mark.parametrize("way", ["matched", "killed"])
async def test_what_waits_no_more_makes_room(the_world: World, way: str) -> None:
    await ruled(the_world, 3)
    ids = await the_world.submitted(3)
    refused(await the_world.submit({}, {}))
    if way == "matched":
        await the_world.match(slots=2)
    else:
        await the_world.order("kill", *ids[:2])
    await long_known(the_world)
    assert isinstance(await the_world.submit({}, {}), replies.Submitted)
    refused(await the_world.submit())


@pytest.mark.parametrize("way", ["declined", "released", "sweep released"])
async def test_what_waits_again_takes_room(the_world: World, way: str) -> None:
    """The room that was counted while they did not wait is not what there is any more."""
    ids = await the_world.submitted(3 if way == "sweep released" else 1)
    ids += [] if way == "sweep released" else await the_world.submitted(1) + await the_world.submitted(1)
    held = await the_world.match(slots=3) if way == "declined" else []
    if not held:
        await the_world.order("hold", *ids)
    await ruled(the_world, 4)
    await long_known(the_world)
    assert isinstance(await the_world.submit(), replies.Submitted)
    if held:
        await the_world.report(pilot(), decline=tuple(held))
    else:
        await the_world.order("release", *ids)
    assert await waiting(the_world) == 4
    assert "would make 5 jobs" in refused(await the_world.submit())


async def test_of_a_group_and_a_vo(the_world: World) -> None:
    await ruled(the_world, 3, "vo", "lhcb")
    await ruled(the_world, 2, "owner_group", "physics")
    await the_world.submit({}, {})
    assert "owner_group physics" in refused(await the_world.submit(who=user("bob")))
    await the_world.submit(who=user("bob", group="top"))
    assert "vo lhcb" in refused(await the_world.submit(who=user("bob", group="top")))
    assert isinstance(await the_world.submit(who=user("eve", vo="cms", group="physics2")), replies.Submitted)


@pytest.mark.parametrize("known", ["just now", "long ago"])
async def test_no_more_wait_however_many_take_submissions_at_once(the_world: World, known: str) -> None:
    await ruled(the_world, 50)
    if known == "long ago":
        await long_known(the_world)
    managers = [
        Commands(DEFAULT_SEGMENTS, SubmitCheck(DEFAULT_SEGMENTS), one) for one in await admissions(the_world)
    ]

    async def submit(n: int, manager: Commands) -> None:
        for turn in range(6):
            raw = (b'{"executable":"/bin/true","array":7}', b'{"executable":"/bin/true"}')
            batch: list[Delivery[Command]] = [
                Delivery(user(), Submit(command_id=CommandId(f"{n}-{turn}-{m}"), jobs=(Raw(each),)))
                for m, each in enumerate(raw)
            ]
            async with the_world.db.transaction() as tx:
                await manager.handle(tx, batch)

    await asyncio.gather(*(submit(n, each) for n, each in enumerate(managers)))
    answers = the_world.replies("ann")
    taken = [
        high - low + 1 for each in answers if isinstance(each, replies.Submitted) for low, high in each.ids
    ]
    assert sum(taken) == await waiting(the_world)
    assert 43 < sum(taken) <= 50
    assert len(answers) == 36


async def admissions(world: World) -> list[WaitingQuota]:
    found = [WaitingQuota(world.db) for _ in range(3)]
    for each in found:
        await each.refresh()
    return found
