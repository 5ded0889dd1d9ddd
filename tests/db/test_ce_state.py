"""How elements are: moves by the table, each written down and told, and who is avoided because of it."""

import json

import pytest

from wms.db import ce_state
from wms.db.database import Database, Transaction
from wms.ids import CeId
from wms.messages import events, queue_changes
from wms.provisioning.health import AVOIDED, ElementHealth, Event, HealthChange, HealthPolicy

ONE, SITE = CeId("A", "one"), CeId("A", "")
TERMS = HealthPolicy()


async def moved(tx: Transaction, place: CeId, *what: Event) -> list[str | None]:
    found = [await ce_state.move(tx, place, HealthChange(each, f"why {each}", "oz"), TERMS) for each in what]
    return [None if each is None else each.state for each in found]


async def test_who_was_never_heard_of_is_healthy_and_moves_by_the_table(tx: Transaction) -> None:
    assert await ce_state.read(tx) == {}
    assert await moved(tx, ONE, "recover", "eat", "probe", "release") == [
        None,
        "quarantined",
        "probing",
        "healthy",
    ]
    assert (await ce_state.read(tx))[ONE].state == "healthy"


async def test_a_move_is_written_down_with_who_when_and_why(tx: Transaction) -> None:
    await moved(tx, ONE, "ban", "recover", "unban")
    moves = await ce_state.moves(tx, "A", "one", 10)
    assert [(each.before, each.event, each.state, each.reason, each.said_by) for each in moves] == [
        ("banned", "unban", "healthy", "why unban", "oz"),
        ("healthy", "ban", "banned", "why ban", "oz"),
    ]
    assert {each.at for each in moves} == {await tx.now()}


async def test_moves_of_a_site_are_shown_with_those_of_its_elements(tx: Transaction) -> None:
    await moved(tx, SITE, "drain")
    await moved(tx, ONE, "ban")
    await moved(tx, CeId("A", "two"), "ban")
    await moved(tx, CeId("B", "one"), "ban")
    assert [each.ce for each in await ce_state.moves(tx, "A", "", 10)] == ["two", "one", ""]
    assert [each.ce for each in await ce_state.moves(tx, "A", "one", 10)] == ["one", ""]
    assert [each.ce for each in await ce_state.moves(tx, "A", "", 1)] == ["two"]


WHAT_IS_TOLD: list[tuple[Event, bool]] = [("fail", False), ("recover", False), ("eat", True), ("unban", True)]


async def test_everybody_is_told_and_matchers_only_of_what_is_avoided(db: Database) -> None:
    posted: list[tuple[str, str]] = []
    db.on_posted = lambda parcels: posted.extend(
        (each.topic, json.loads(payload)["type"]) for each in parcels for payload in each.payloads
    )
    for event, is_for_matchers in WHAT_IS_TOLD:
        posted.clear()
        async with db.transaction() as tx:
            await moved(tx, ONE, event)
        assert (events.TOPIC, "element-state") in posted
        assert ((queue_changes.TOPIC, "rules-changed") in posted) == is_for_matchers, event


async def test_an_element_is_as_its_site_where_that_is_avoided() -> None:
    banned = ElementHealth(state="banned", reason="r")
    known = {ONE: ElementHealth(state="backing-off")}
    assert ce_state.of(known, "A", "one").state == "backing-off"
    assert ce_state.of(known, "A", "two").state == "healthy"
    assert ce_state.of({**known, SITE: banned}, "A", "one") == banned
    assert ce_state.of({SITE: ElementHealth(state="backing-off")}, "A", "one").state == "healthy"


async def test_what_is_avoided_says_why(tx: Transaction) -> None:
    await moved(tx, ONE, "ban")
    await moved(tx, CeId("A", "two"), "fail")
    avoided = await ce_state.avoided(tx)
    assert list(avoided) == [ONE]
    assert "why ban" in avoided[ONE]
    assert "backing-off" not in AVOIDED


async def test_old_moves_are_forgotten_but_for_those_that_led_to_how_it_is(tx: Transaction) -> None:
    await moved(tx, ONE, "eat", "probe", "release", "ban", "ban")
    await tx.execute("update ce_move set at = at - interval '2 d'")
    assert await ce_state.forget(tx, 86_400, 1) == 1, "at most so many at once"
    assert await ce_state.forget(tx, 86_400, 100) == 2
    assert [each.event for each in await ce_state.moves(tx, "A", "one", 10)] == ["ban", "ban"]
    assert await ce_state.forget(tx, 86_400, 100) == 0


async def test_one_judges_at_a_time(db: Database) -> None:
    async with db.transaction() as one, db.transaction() as other:
        assert await ce_state.may_judge(one)
        assert not await ce_state.may_judge(other)
    async with db.transaction() as other:
        assert await ce_state.may_judge(other)


@pytest.mark.parametrize(
    ("state", "suspect"), [(None, True), ("healthy", False), ("backing-off", True), ("banned", False)]
)
async def test_suspects_are_in_use_and_failed_quickly_since_they_were_last_set_free(
    tx: Transaction, state: str | None, *, suspect: bool
) -> None:
    await tx.execute(
        "insert into ended_attempt (job_id, epoch, pilot_id, site, ce, offered_at, accepted_at, started_at, ended_at,"
        " outcome, reason, reason_text, match_seq)"
        " select n, 1, 'p', 'A', 'one', now(), now(), now() - interval '2 s', now() - interval '1 s', 'failed', 'EXIT_CODE', '', 1"
        " from generate_series(1, 5) as n"
    )
    if state:
        await tx.execute("insert into ce_state (site, ce, state) values ('A', 'one', $1)", state)
    assert (await ce_state.suspects(tx, HealthPolicy(failures=5)) == {ONE}) == suspect
    assert await ce_state.suspects(tx, HealthPolicy(failures=6)) == set()
    assert await ce_state.suspects(tx, HealthPolicy(failures=5, quick_seconds=0.5)) == set()
