"""Real reservations: the earliest start that Slurm accepts, found again by their names, removed when nobody needs them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.agreement.slurm_listing import TIME
from tests.middleware import Sites
from tests.testbed.agreement.cluster import delete_all, listed, slurm_element, starts
from tests.unit.agreement.offers import terms
from tests.waiting import eventually
from wms.agreement.calendar import Booking, OwnerBound
from wms.agreement.decision import Granted
from wms.agreement.reasons import AgreementReason, Refusal
from wms.ids import AgreementId
from wms.runtime import clock

pytestmark = [pytest.mark.testbed, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def _nothing_is_left(testbed: Sites) -> Iterator[None]:
    delete_all(testbed)
    yield
    testbed.run("beta", "scancel", "--state=PENDING", "--state=RUNNING", "-u", "root")
    delete_all(testbed)


def now() -> datetime:
    return clock.now().replace(microsecond=0)


async def decided(testbed: Sites, at: datetime, **offer: Any) -> Granted | Refusal | None:
    offer.setdefault("duration_seconds", 100.0)
    return await (await slurm_element(testbed).look([])).decide(terms(**offer), at)


async def test_the_earliest_start_is_granted_and_slurm_lists_it_so(testbed: Sites) -> None:
    """The cluster has two nodes of eight cores: each holds one of five."""
    at = now()
    offers = [{"agreement_id": AgreementId(f"a-{n}"), "cpus": 5} for n in range(4)]
    outlook = await slurm_element(testbed).look([])
    assert outlook.cpus == 8
    granted = [await outlook.decide(terms(duration_seconds=100.0, **each), at) for each in offers]
    starts = [each.start_at for each in granted if isinstance(each, Granted)]
    later = at + timedelta(seconds=100)
    assert starts == [at, at, later, later]
    there = listed(testbed)
    assert {name: (each.cpus, each.start_at, each.ends_at) for name, each in there.items()} == {
        f"wms-a-{n}": (5, start, start + timedelta(seconds=100)) for n, start in enumerate(starts)
    }


async def test_one_owner_holds_half_of_the_cores_and_another_starts_at_once(testbed: Sites) -> None:
    at = now()
    owners, later = OwnerBound(share=0.5, soon=at), at + timedelta(seconds=100)
    outlook = await slurm_element(testbed).look([], owners)
    booked = []
    for n in range(3):
        offer = terms(agreement_id=AgreementId(f"a-{n}"), cpus=4, duration_seconds=100.0)
        decision = await outlook.decide(offer, at)
        assert isinstance(decision, Granted)
        booked.append(
            Booking(
                agreement_id=offer.agreement_id,
                cpus=4,
                start_at=decision.start_at,
                ends_at=decision.ends_at,
                owner=offer.owner,
            )
        )
    assert [each.start_at for each in booked] == [at, at, later]
    outlook = await slurm_element(testbed).look(booked, owners)
    again = terms(agreement_id=AgreementId("again"), cpus=4, duration_seconds=100.0)
    other = terms(agreement_id=AgreementId("other"), cpus=4, duration_seconds=100.0, owner="bob")
    decisions = [await outlook.decide(each, at) for each in (again, other)]
    assert [each.start_at for each in decisions if isinstance(each, Granted)] == [later, at]


async def test_short_ones_are_filled_in_before_a_wide_one(testbed: Sites) -> None:
    at = now()
    soon = at + timedelta(seconds=200)
    for n in range(2):
        wide = {"agreement_id": AgreementId(f"wide-{n}"), "cpus": 8, "earliest_start": soon}
        assert isinstance(await decided(testbed, at, **wide), Granted)
    short = await decided(testbed, at, agreement_id=AgreementId("short"), cpus=8)
    long = await decided(testbed, at, agreement_id=AgreementId("long"), cpus=8, duration_seconds=250.0)
    assert isinstance(short, Granted)
    assert isinstance(long, Granted)
    assert (short.start_at, long.start_at) == (at, soon + timedelta(seconds=100))


async def test_without_room_in_the_window_it_is_denied_and_nothing_is_made(testbed: Sites) -> None:
    at = now()
    for n in range(2):
        await decided(testbed, at, agreement_id=AgreementId(f"a-{n}"), cpus=8)
    refused = await decided(
        testbed, at, agreement_id=AgreementId("late"), latest_start=at + timedelta(seconds=99)
    )
    assert isinstance(refused, Refusal)
    assert refused.code is AgreementReason.NO_ROOM
    assert set(listed(testbed)) == {"wms-a-0", "wms-a-1"}


async def test_running_jobs_keep_their_cores_to_their_time_limit(testbed: Sites) -> None:
    job = (
        "sbatch",
        "--parsable",
        "-p",
        "main",
        "-t",
        "2",
        "-o",
        "/dev/null",
        "-n",
        "16",
        "--wrap",
        "sleep 300",
    )
    testbed.run("beta", *job)
    await eventually(lambda: testbed.run("beta", "squeue", "-h", "-t", "R", "-o", "%i"), 30)
    granted = await decided(testbed, now(), cpus=8)
    assert isinstance(granted, Granted)
    ends = testbed.run("beta", "env", "TZ=UTC", "squeue", "-h", "-t", "R", "-o", "%e").split()
    after = granted.start_at - datetime.strptime(ends[0], TIME).replace(tzinfo=UTC)
    assert after == timedelta(seconds=1)


async def test_one_that_is_there_is_granted_as_it_is(testbed: Sites) -> None:
    first = await decided(testbed, now())
    assert await decided(testbed, now() + timedelta(seconds=5)) == first


async def test_only_this_systems_are_held_and_released(testbed: Sites) -> None:
    element = slurm_element(testbed)
    await decided(testbed, now())
    when = ("StartTime=now+100", "Duration=5", "NodeCnt=1", "CoreCnt=1", "PartitionName=main", "Users=root")
    testbed.run("beta", "scontrol", "create", "reservation", "ReservationName=others", *when)
    (held,) = await element.holdings()
    assert (held.name, held.in_use) == ("wms-a-1", False)
    assert await element.release(["wms-a-1"]) == {"wms-a-1"}
    assert await element.release(["wms-a-1"]) == {"wms-a-1"}
    assert set(listed(testbed)) == {"others"}


async def test_one_in_use_is_told_and_stays_until_its_job_has_ended(testbed: Sites) -> None:
    element = slurm_element(testbed)
    await decided(testbed, now(), cpus=2, duration_seconds=300.0)
    job = (
        "sbatch",
        "--parsable",
        "--reservation=wms-a-1",
        "-t",
        "2",
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 100",
    )
    number = testbed.run("beta", *job).strip()

    async def used() -> bool:
        return [each.in_use for each in await element.holdings()] == [True]

    await eventually(used, 30)
    assert await element.release(["wms-a-1"]) == set()
    testbed.run("beta", "scancel", number)
    await eventually(lambda: element.release(["wms-a-1"]), 60)
    assert not listed(testbed)


async def test_many_are_made_in_one_call_and_the_others_tried_by_themselves(testbed: Sites) -> None:
    """Two nodes of eight cores: the calendar shows sixteen, of which no node has twelve."""
    at = now()
    offers = [
        terms(agreement_id=AgreementId(f"a-{n}"), cpus=cpus, duration_seconds=100.0)
        for n, cpus in enumerate((5, 5, 5, 8))
    ]
    outlook = await slurm_element(testbed).look([])
    await outlook.begin(offers, at)
    made = starts(testbed)
    decisions = [await outlook.decide(each, at) for each in offers]
    assert len(made) > 1
    granted = {each.reservation: each.start_at for each in decisions if isinstance(each, Granted)}
    assert granted == starts(testbed)
    assert granted.items() >= made.items()
    assert sorted(granted.values())[:2] == [at, at]
    assert set(granted) == {f"wms-a-{n}" for n in range(4)}
    element = slurm_element(testbed)
    assert await element.release([*granted, "wms-never-made"]) == {*granted, "wms-never-made"}
    assert not listed(testbed)
