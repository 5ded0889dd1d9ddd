"""The CHECK constraints of the schema are those that the state table makes, and they refuse what it refuses."""

import asyncpg
import pytest

from wms.job import constraint
from wms.job.state import TRANSITIONS, Event, State


async def definition(connection: asyncpg.Connection, table: str, name: str) -> str:
    text = await connection.fetchval(
        "select pg_get_constraintdef(oid) from pg_constraint where conrelid = $1::text::regclass and conname = $2",
        table,
        name,
    )
    assert isinstance(text, str), f"{table} has no constraint {name}"
    return text


async def test_constraints_are_made_from_the_table(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute(
        f"""create table made (before text, event text not null, state text not null,
                constraint job_state check ({constraint.state_check()}),
                constraint job_move_legal check ({constraint.move_check()}))"""
    )
    for table, name in (("job", "job_state"), ("job_move", "job_move_legal")):
        assert await definition(connection, table, name) == await definition(connection, "made", name)
    await connection.close()


async def test_history_takes_every_legal_move_and_no_other(database: str) -> None:
    connection = await asyncpg.connect(database)
    seq = 0
    for before in State:
        for event in Event:
            for state in State:
                seq += 1
                legal = TRANSITIONS[before].get(event) is state
                # The moves that miss by one part are enough: 17 x 18 x 17 of them would be slow.
                if not legal and state is not State.WAITING:
                    continue
                insert = connection.execute(
                    "insert into job_move (job_id, seq, before, event, state, epoch, source)"
                    " values (1, $1, $2, $3, $4, 0, 't')",
                    seq,
                    before,
                    event,
                    state,
                )
                if legal:
                    await insert
                else:
                    with pytest.raises(asyncpg.CheckViolationError):
                        await insert
    await connection.close()


async def test_owner_group_and_vo_cannot_be_changed(database: str) -> None:
    from tests.services.world import world

    async with world(database) as one:
        (job_id,) = await one.submitted()
        for column in ("owner", "owner_group", "vo"):
            with pytest.raises(asyncpg.RaiseError, match="never change"):
                await one.sql(f"update job set {column} = 'mallory' where job_id = $1", job_id)
        assert (await one.job(job_id))["owner"] == "ann"
