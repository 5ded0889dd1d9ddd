"""A fault at one job, queue or ad is that one's alone: the loops that meet it go on with all others."""

import asyncio
from typing import Any

import pytest

from services.job_manager.maintenance import lease_sweeper
from services.matcher.ads import Elements
from tests.services.world import World, ids
from wms.db.database import Database
from wms.ids import CeId, TaskQueueId
from wms.job.job import Job
from wms.matching.closures import Closures
from wms.matching.grouping import Requirements
from wms.queue_index.index import QueueIndex


async def test_a_job_whose_lease_cannot_be_taken_back_keeps_no_other_from_coming_back(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await the_world.running(5)
    faulty, take_one = held[2][0], lease_sweeper._take_one

    def take_or_fail(ledger: Any, found: Job, *more: Any) -> None:
        if found.job_id == faulty:
            raise OverflowError("a number of this job")
        take_one(ledger, found, *more)

    monkeypatch.setattr(lease_sweeper, "_take_one", take_or_fail)
    await the_world.expire(*ids(held))
    await the_world._leases.sweep()
    states = [await the_world.state(each) for each in ids(held)]
    assert states == ["Waiting", "Waiting", "Running", "Waiting", "Waiting"]
    await the_world._leases.sweep()  # it is left alone for a while
    monkeypatch.undo()
    the_world._leases._set_aside.clear()
    await the_world._leases.sweep()
    assert await the_world.state(faulty) == "Waiting"


async def test_a_queue_that_cannot_be_indexed_keeps_no_other_from_being_matched(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bad,) = await the_world.submitted(1, cpu_time=50_000)
    (good,) = await the_world.submitted(1, cpu_time=60)
    add_queue = QueueIndex.add_queue

    def add_or_fail(self: QueueIndex, tq_id: Any, requirements: Requirements) -> None:
        if requirements.cpu_segment > 10_000:
            raise ValueError("a text of this queue")
        add_queue(self, tq_id, requirements)

    monkeypatch.setattr(QueueIndex, "add_queue", add_or_fail)
    await the_world.reconcile()
    assert ids(await the_world.match(slots=2)) == [good]
    monkeypatch.undo()
    await the_world.reconcile()
    assert ids(await the_world.match(slots=2)) == [bad]


async def test_a_queue_that_cannot_be_numbered_leaves_every_other_with_its_reason(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await the_world.submitted(cpu_time=60)
    (bad,) = await the_world.submitted(cpu_time=50_000)
    await the_world.submitted(cpu_time=60, sites=["A"])
    append = Closures.append

    def append_or_fail(self: Closures, requirements: Requirements) -> None:
        append(self, requirements)
        if requirements.cpu_segment > 10_000:
            raise OverflowError("a number of this queue")

    monkeypatch.setattr(Closures, "append", append_or_fail)
    for _ in range(2):
        await the_world.look()
        told = await the_world.sql("select r.code, j.job_id from job j join wait_reason r using (tq_id)")
        assert sorted(each["code"] for each in told) == ["IMPOSSIBLE_NOW", "IMPOSSIBLE_NOW"]
        assert bad not in {each["job_id"] for each in told}
        await the_world.submitted(cpu_time=50_001)


class FaultyIndex:
    """Stands for an index that fails at one ad."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def advertise(self, site: str, ce: str, text: str) -> None:
        if site == "bad":
            raise ValueError("a text of this ad")
        self.told[f"{site}/{ce}"] = text


def test_an_ad_that_cannot_be_indexed_is_left_out() -> None:
    index = FaultyIndex()
    elements = Elements(Database(None), index)  # type: ignore[arg-type]
    for site in ("a", "bad", "c"):
        elements._advertise(CeId(site, "ce"), "[x = 1]")
    assert index.told == {"a/ce": "[x = 1]", "c/ce": "[x = 1]"}


async def test_nothing_waits_while_queues_with_long_requirements_are_learnt(the_world: World) -> None:
    turns = 0

    async def turning() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(turning())
    plain = Requirements(owner="a", owner_group="user", vo="local", setup="default", cpu_segment=500)
    long = {TaskQueueId(10_000 + n): plain for n in range(40)}
    await the_world._feed._know(long)
    task.cancel()
    assert turns >= len(long)
