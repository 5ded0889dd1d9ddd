"""The lease sweeper: what runs out is taken back, and what is lost too often fails."""

from typing import Any

import pytest

from services.job_manager.maintenance import lease_sweeper
from tests.services.world import World, ids, pilot
from wms.job.job import Job


async def test_an_expired_lease_is_taken_back_and_given_on_under_the_next_epoch(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world.expire(held[0])
    assert await the_world.state(held[0]) == "Waiting"
    (attempt,) = await the_world.attempts(held[0])
    assert (attempt["outcome"], attempt["reason"]) == ("lost", "LEASE_EXPIRED")
    assert (await the_world.job(held[0]))["attempts"] == 1
    assert await the_world.match(pilot("p-2")) == [(held[0], held[1] + 1)]


async def test_an_offer_not_taken_goes_back_and_does_not_count(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=1)
    for epoch in range(1, 6):
        assert await the_world.match() == [(job_id, epoch)]
        await the_world.expire(job_id)
    assert await the_world.state(job_id) == "Waiting"
    assert (await the_world.job(job_id))["attempts"] == 0
    assert {each["outcome"] for each in await the_world.attempts(job_id)} == {"withdrawn"}
    assert (await the_world.reasons(job_id)).count("OFFER_EXPIRED") == 5


async def test_too_many_lost_attempts_fail_the_job(the_world: World) -> None:
    (job_id,) = await the_world.submitted(max_attempts=2)
    for n in (1, 2):
        (held,) = await the_world.match(pilot(f"p-{n}"))
        await the_world.report(pilot(f"p-{n}"), accept=(held,), start=(held,))
        await the_world.expire(job_id)
    assert await the_world.state(job_id) == "Failed"
    assert (await the_world.job(job_id))["reason"] == "TOO_MANY_ATTEMPTS"
    assert await the_world.match(pilot("p-3")) == []


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
