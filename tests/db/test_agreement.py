"""Agreements in the database: offered once, moved by the state table alone, over in time, and forgotten when nothing is held."""

from datetime import timedelta
from typing import Any

import asyncpg
import msgspec

from tests.services.agreement.offered import E, R, grant, later, marked, offered, one, terms
from tests.services.world import World
from wms.agreement.quota import ReservedAmount
from wms.agreement.state import ALIVE, AgreementState, state_check
from wms.agreement.template import AgreementTemplate
from wms.auth.policy import Scope
from wms.db import agreement
from wms.db.agreement import ReservableElement, SoughtAgreements
from wms.ids import AgreementId, CeId
from wms.messages.agreements import DECISIONS_TOPIC, AgreementDecided

S = AgreementState
PLACE = CeId("A", "ce")
GRACE = timedelta(seconds=300)
ALL = Scope(reach="all")


def told(world: World) -> list[AgreementDecided]:
    return [msgspec.json.decode(each, type=AgreementDecided) for each in world.take(DECISIONS_TOPIC)]


async def test_the_states_are_those_of_the_table(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute(f"alter table agreement add constraint again check ({state_check()})")
    texts = await connection.fetch(
        "select pg_get_expr(conbin, conrelid) from pg_constraint where conname in ('again', 'agreement_state')"
    )
    await connection.close()
    assert len(texts) == 2
    assert len({text[0] for text in texts}) == 1


async def test_an_offer_is_stored_once(the_world: World) -> None:
    (job,) = await the_world.submitted()
    await offered(the_world, terms(job))
    await offered(the_world, terms(job, cpus=64))
    found = await one(the_world)
    assert (found.state, found.cpus, found.job_id) == (S.REQUESTED, 2, job)
    assert found.expires_at == found.created_at + timedelta(seconds=60)


async def test_offers_for_jobs_of_others_are_found(the_world: World) -> None:
    (job,) = await the_world.submitted()
    offers = [
        terms(job),
        terms(job, "vo", vo="atlas"),
        terms(job, "owner", owner="bob"),
        terms(job, "group", group="admins"),
        terms(job + 1_000_000, "none"),
    ]
    async with the_world.db.transaction() as tx:
        assert await agreement.of_others(tx, offers) == {"vo", "owner", "group", "none"}


async def test_events_that_the_table_does_not_name_change_nothing(the_world: World) -> None:
    (job,) = await the_world.submitted()
    await offered(the_world, terms(job))
    assert await marked(the_world, E.CONFIRM) == []
    await grant(the_world)
    assert [each.state for each in await marked(the_world, E.CONFIRM, code=R.CONFIRMED)] == [S.CONFIRMED]
    assert await marked(the_world, E.EXPIRE) == []
    assert [each.state for each in told(the_world)] == [S.TEMPORARY, S.CONFIRMED]


async def test_what_is_over_ends_and_the_broker_is_told(the_world: World) -> None:
    jobs = await the_world.submitted(4)
    for job, name in zip(jobs, ("undecided", "unconfirmed", "unused", "used"), strict=True):
        await offered(the_world, terms(job, name))
    for name in ("unconfirmed", "unused", "used"):
        await grant(the_world, name)
    for name in ("unused", "used"):
        await marked(the_world, E.CONFIRM, name, code=R.CONFIRMED)
    await the_world.sql("update agreement set used_at = now() where agreement_id = 'used'")
    told(the_world)
    for seconds, ended in [
        (0, set()),
        (61, {("undecided", S.DENIED), ("unconfirmed", S.EXPIRED)}),
        (240, {("unused", S.NO_SHOW)}),
        (300, {("used", S.ENDED)}),
    ]:
        await later(the_world, seconds)
        async with the_world.db.transaction() as tx:
            over = await agreement.end_overdue(tx, "A", GRACE, 10)
            assert await agreement.end_overdue(tx, "B", GRACE, 10) == []
        assert {(each.agreement_id, each.state) for each in over} == ended
        assert {(each.agreement_id, each.state) for each in told(the_world)} == ended


async def test_a_reservation_is_used_when_its_job_is_at_a_pilot_or_the_batch_system_says_so(
    the_world: World,
) -> None:
    ((job, _),) = await the_world.running()
    await offered(the_world, terms(job), terms(job, "a-2"), terms(job + 1, "a-3"))
    for name in ("a-1", "a-3"):
        await grant(the_world, name)
        await marked(the_world, E.CONFIRM, name, code=R.CONFIRMED)
    await the_world.sql("update agreement set reservation = 'wms-a-3' where agreement_id = 'a-3'")
    async with the_world.db.transaction() as tx:
        assert await agreement.use(tx, "A", []) == 1
        assert await agreement.use(tx, "A", ["wms-a-3"]) == 1
        assert await agreement.use(tx, "A", ["wms-a-3"]) == 0


async def test_the_end_of_its_job_ends_it(the_world: World) -> None:
    (job,) = await the_world.submitted()
    await offered(the_world, terms(job))
    await grant(the_world, start=1_000)
    await marked(the_world, E.CONFIRM, code=R.CONFIRMED)
    await the_world.order("kill", job)
    async with the_world.db.transaction() as tx:
        (over,) = await agreement.end_overdue(tx, "A", GRACE, 10)
    assert (over.state, over.code) == (S.ENDED, R.JOB_OVER)


async def test_what_a_batch_system_may_hold_is_known_until_it_is_released(the_world: World) -> None:
    (job,) = await the_world.submitted()
    await offered(the_world, terms(job))
    async with the_world.db.transaction() as tx:
        await agreement.intend(tx, {AgreementId("a-1"): "wms-a-1"})
        assert await agreement.living(tx, PLACE) == {"wms-a-1": ("a-1", S.REQUESTED)}
        assert await agreement.releasable(tx, PLACE, 10) == []
    await marked(the_world, E.CANCEL, code=R.CANCELLED)
    async with the_world.db.transaction() as tx:
        assert await agreement.living(tx, PLACE) == {}
        (held,) = await agreement.releasable(tx, PLACE, 10)
        assert (held.agreement_id, held.reservation) == ("a-1", "wms-a-1")
        await tx.execute("update agreement set changed_at = now() - interval '90 d'")
        assert await agreement.forget(tx, 86_400.0, 10) == 0, "something may be held"
        await agreement.released(tx, [AgreementId("a-1")])
        assert await agreement.releasable(tx, PLACE, 10) == []
        assert await agreement.forget(tx, 86_400.0, 10) == 1


async def test_owners_who_ask_and_who_asked_of_late_are_known(the_world: World) -> None:
    (job,) = await the_world.submitted()
    await offered(the_world, terms(job), terms(job, "b", owner="bob"), terms(job, "c", owner="carol"))
    await marked(the_world, E.CANCEL, "b", code=R.CANCELLED)
    await the_world.sql("update agreement set created_at = now() - interval '10 min'")
    async with the_world.db.transaction() as tx:
        assert sorted(await agreement.askers(tx, PLACE, 3_600.0, 10)) == ["ann", "bob", "carol"]
        assert sorted(await agreement.askers(tx, PLACE, 60.0, 10)) == ["ann", "carol"]
        assert len(await agreement.askers(tx, PLACE, 60.0, 1)) == 1
        assert await agreement.askers(tx, CeId("A", "other"), 3_600.0, 10) == []


async def test_one_service_at_a_time_decides_for_an_element(the_world: World) -> None:
    element = ReservableElement(8, AgreementTemplate(max_cpus=4))
    async with the_world.db.transaction() as tx:
        await agreement.tell_elements(tx, "A", {"ce": element}, 60.0)
        assert await agreement.reservable(tx) == {PLACE: element}
        await agreement.withdraw_element(tx, PLACE)
        assert await agreement.reservable(tx) == {}
        await agreement.tell_elements(tx, "A", {"ce": element}, 60.0)
        assert await agreement.take_turn(tx, PLACE, "one", 30.0)
        assert await agreement.take_turn(tx, PLACE, "one", 30.0)
        assert not await agreement.take_turn(tx, PLACE, "two", 30.0)
        assert not await agreement.keep_turn(tx, PLACE, "two")
        await tx.execute("update agreement_element set held_until = now() - interval '1 s'")
        assert await agreement.keep_turn(tx, PLACE, "one"), "nobody else has taken it"
        assert await agreement.take_turn(tx, PLACE, "two", 30.0)
        assert not await agreement.keep_turn(tx, PLACE, "one")
        await agreement.tell_elements(tx, "A", {"ce": element}, 0.0)


async def test_amounts_are_by_vo_and_lists_by_scope(the_world: World) -> None:
    jobs = await the_world.submitted(3)
    offers = [
        terms(jobs[0], "a-1"),
        terms(jobs[1], "a-2", vo="atlas", owner="bob"),
        terms(jobs[2], "a-3", cpus=4),
    ]
    await offered(the_world, *offers)
    for name in ("a-1", "a-2"):
        await grant(the_world, name)
    await marked(the_world, E.DENY, "a-3", code=R.NO_ROOM)
    async with the_world.db.transaction() as tx:
        assert await agreement.reserved(tx, "A") == {
            "lhcb": ReservedAmount(1, 2, 1_200.0, {"ann": 1}),
            "atlas": ReservedAmount(1, 2, 1_200.0, {"bob": 1}),
        }
        assert [each.agreement_id for each in await agreement.granted(tx, PLACE)] == ["a-1", "a-2"]
        assert await agreement.requested(tx, PLACE, 10) == []

        assert {each.agreement_id for each in await agreement.listed(tx, ALL, SoughtAgreements(), 10)} == {
            "a-1",
            "a-2",
        }


async def test_an_agreement_is_handed_over_to_another_job_of_its_owner(the_world: World) -> None:
    first, second = await the_world.submitted(2)
    await offered(the_world, terms(first))
    name = (await one(the_world)).agreement_id
    async with the_world.db.transaction() as tx:
        await agreement.hand_over(tx, {name: second})
    assert (await one(the_world)).job_id == second
    await the_world.sql("update agreement set owner = 'bob'")
    async with the_world.db.transaction() as tx:
        await agreement.hand_over(tx, {name: first})
    assert (await one(the_world)).job_id == second, "that job is not bob's"


async def test_agreements_are_listed_by_scope_conditions_and_pages(the_world: World) -> None:
    jobs = await the_world.submitted(3)
    await offered(the_world, terms(jobs[0]), terms(jobs[1], "a-2", vo="atlas", owner="bob"))
    await offered(the_world, terms(jobs[2], "a-3", site="B"))
    await marked(the_world, E.DENY, "a-3", code=R.NO_ROOM)
    every = frozenset(AgreementState)

    async def names(scope: Scope = ALL, *, limit: int = 10, **conditions: Any) -> list[str]:
        sought = SoughtAgreements(**({"states": every} | conditions))
        async with the_world.db.transaction() as tx:
            return [each.agreement_id for each in await agreement.listed(tx, scope, sought, limit)]

    assert await names() == ["a-3", "a-2", "a-1"]
    assert await names(states=ALIVE) == ["a-2", "a-1"]
    assert await names(Scope(reach="vo", vo="lhcb")) == ["a-3", "a-1"]
    assert await names(Scope(reach="owner", owner="bob", group="physics", vo="atlas")) == ["a-2"]
    assert await names(job_id=jobs[2], site="B", ce="ce", owner="ann") == ["a-3"]
    assert await names(site="A", owner="nobody") == []
    last = await one(the_world, "a-2")
    assert await names(after=(last.created_at, "a-2")) == ["a-1"]
    assert await names(limit=2) == ["a-3", "a-2"]


async def test_owners_take_turns_where_offers_are_decided(the_world: World) -> None:
    await offered(the_world, *(terms(n, f"m-{n}") for n in range(3)))
    await offered(the_world, terms(7, "b-0", owner="bob"), terms(8, "c-0", owner="carl", ce="other"))
    async with the_world.db.transaction() as tx:
        found = await agreement.requested(tx, CeId("A", "ce"), 3)
    assert [each.agreement_id for each in found] == ["m-0", "b-0", "m-1"]
