"""What the database tells of a system's health beside heartbeats."""

import pytest

from wms.db import health
from wms.db.database import Database, Transaction

PILOT = "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, state, seen_at, word_at, ended_at)"


async def test_parcels_count_that_are_long_due(tx: Transaction) -> None:
    assert dict(await health.outbox(tx)) == {"parcels": 0, "age": 0.0}
    for seconds in (5, 20, 60):
        await tx.execute(
            "insert into outbox (topic, keys, payloads, due_at) values ('t', array['k'::bytea], array['p'::bytea], now() - make_interval(secs => $1))",
            float(seconds),
        )
    found = await health.outbox(tx)
    assert found["parcels"] == 2
    assert found["age"] == pytest.approx(60, abs=0.1)


async def test_pilots_that_are_silent_are_told_from_those_that_never_reached_us(tx: Transaction) -> None:
    ago = {"now": "now()", "long": "now() - interval '2 min'", "never": "null"}
    for name, state, seen, word, ended in (
        ("speaks", "Running", "now", "now", "never"),
        ("fell silent", "Running", "long", "now", "never"),
        ("never spoke", "Running", "never", "long", "never"),
        ("has just begun", "Running", "never", "now", "never"),
        ("waits", "Submitted", "never", "long", "never"),
        ("is over", "Done", "long", "long", "now"),
    ):
        await tx.execute(
            f"{PILOT} values ($1, 'A', 'ce', 'v', 'local', 1, $2, {ago[seen]}, {ago[word]}, {ago[ended]})",
            name,
            state,
        )
    assert dict(await health.pilots(tx)) == {"pilots": 5, "running": 4, "silent": 1, "unheard": 1}


async def test_connections_are_counted_beside_how_many_there_may_be(db: Database) -> None:
    async with db.transaction() as one:
        before = await health.connections(one)
        async with db.transaction() as other:
            after = await health.connections(other)
    assert 0 < before["open"] <= after["open"] < after["most"]
