"""The event log that the auditor holds against the database."""

from typing import Any, get_args

import asyncpg
import msgspec

from tests.db.audit.test_auditor import broken
from tests.services.world import World, result, world
from tests.unit.messages.examples import FULL, MINIMAL
from wms.audit import event_log
from wms.audit.auditor import examine
from wms.db import block
from wms.messages.events import Fact
from wms.messages.wire import encode


def parts(told: event_log.LoggedHistory) -> tuple[list[Any], list[Any], list[Any]]:
    return told.moves, told.births, told.together


async def told_by(one: World) -> event_log.LoggedHistory:
    told = event_log.LoggedHistory()
    for payload in one.take(event_log.TOPIC):
        event_log._note(told, msgspec.json.decode(payload))
    return told


def test_every_kind_of_fact_is_read_from_the_log() -> None:
    """Those that tell no move of a job are passed over."""
    for union in (FULL, MINIMAL):
        for tag in ("job-event", "jobs-moved", "jobs-queued", "sweep-moved", "wait-reason", "element-state"):
            event_log._note(event_log.LoggedHistory(), msgspec.json.decode(encode(union[tag])))
    assert {str(kind.__struct_config__.tag) for kind in get_args(Fact)} == {
        "job-event", "jobs-moved", "jobs-queued", "sweep-moved", "wait-reason", "element-state",
    }  # fmt: skip


async def test_event_log_tells_what_happened_and_a_lie_of_it_is_found(database: str) -> None:
    connection = await asyncpg.connect(database)
    async with world(database) as one:
        held = await one.running(3)
        await one.report(finish=tuple(result(each) for each in held))
        told = await told_by(one)
        ids = await one.swept(1_500)
        await one.order("kill", *ids[:2], ids[-1])
        async with one.db.transaction() as tx:
            await block.expand(tx, [ids[2]])
        told = event_log.LoggedHistory(
            *(a + b for a, b in zip(parts(told), parts(await told_by(one)), strict=True))
        )
    assert (len(told.moves), len(told.births), len(told.together)) == (9, 2, 2)
    async with connection.transaction():
        report = await examine(connection, told)
        assert report.ok, report.text(brief=True)
        name = "what the event log tells has happened"
        job_id, seq, event, state, epoch, reason = told.moves[0]
        lies = {
            "a move that never was": (job_id, 99, event, state, epoch, reason),
            "another state": (job_id, seq, event, "Held", epoch, reason),
            "another epoch": (job_id, seq, event, state, epoch + 1, reason),
            "another job": (10**6, seq, event, state, epoch, reason),
        }
        for lie, move in lies.items():
            report = await examine(connection, event_log.LoggedHistory(moves=[*told.moves, move]))
            assert broken(report) == [name], lie
        first, count, seq, event, state, reason = told.together[0]
        for false in (
            (first, count + 1, seq, event, state, reason),
            (first, count, seq + 1, event, state, reason),
        ):
            report = await examine(connection, event_log.LoggedHistory(together=[false]))
            assert broken(report) == [name], false
        report = await examine(connection, event_log.LoggedHistory(births=[(1, 2_000, "ann")]))
        assert broken(report) == [name]
    await connection.close()
