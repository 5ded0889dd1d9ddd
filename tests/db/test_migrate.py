"""Migrations: applied once however many start, refused when they do not fit, and true to the tables of the code."""

import asyncio
import re
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

import asyncpg
import pytest

from tests.conftest import execute
from wms.db.migrate import Migration, check, migrate, migrations
from wms.errors import Rejected, Unavailable
from wms.job.constraint import move_check, state_check
from wms.job.state import FIRST, TRANSITIONS, Event, State

FOLDER = Path(__file__).parents[2] / "migrations"
KNOWN = [migration.name for migration in migrations()]


async def rows(url: str, query: str, *args: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        found: list[asyncpg.Record] = await connection.fetch(query, *args)
        return found
    finally:
        await connection.close()


async def apply(connection: asyncpg.Connection, migration: Migration) -> None:
    for statement in [migration.sql] if migration.in_transaction else migration.statements:
        await connection.execute(statement)


async def applied(url: str) -> list[str]:
    return [
        row["name"] for row in await rows(url, "select name from schema_migration order by applied_at, name")
    ]


def know(monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
    """Have this version know migrations beyond those of the repository."""
    known = tuple(sorted((*migrations(), *more), key=lambda each: each.name))
    monkeypatch.setattr("wms.db.migrate.migrations", lambda: known)


async def test_many_starters_apply_each_once(empty_database: str) -> None:
    lists = await asyncio.gather(*(migrate(empty_database) for _ in range(6)))
    assert sorted(name for names in lists for name in names) == KNOWN
    assert await applied(empty_database) == KNOWN
    await check(empty_database)


async def test_a_second_run_applies_nothing(database: str) -> None:
    assert await migrate(database) == []


async def test_a_starter_waits_for_the_one_at_work(empty_database: str) -> None:
    """Whoever holds the lock is waited for, and then there is nothing left to do but what it left undone."""
    other = await asyncpg.connect(empty_database)
    await other.execute("select pg_advisory_lock(7100)")
    waiting = asyncio.create_task(migrate(empty_database))
    done, _ = await asyncio.wait([waiting], timeout=0.3)
    assert not done
    await other.close()
    assert await asyncio.wait_for(waiting, 10) == KNOWN


async def test_a_starter_that_dies_leaves_nothing_half_done(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        know(patch, Migration("9999_pre_broken", "create table half (n int); select no_such_function();"))
        with pytest.raises(asyncpg.UndefinedFunctionError):
            await migrate(empty_database)
    assert await applied(empty_database) == KNOWN
    assert not await rows(empty_database, "select 1 from pg_class where relname = 'half'")
    assert await migrate(empty_database) == []


async def test_an_empty_database_is_refused_with_what_to_run(empty_database: str) -> None:
    with pytest.raises(Rejected) as caught:
        await check(empty_database)
    assert caught.value.code == "SCHEMA_OLD"
    assert KNOWN[0] in caught.value.message
    assert caught.value.remedy == "run `wms migrate`"


async def test_an_older_schema_is_refused_until_migrated(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, Migration("9998_pre_more", "create table more (n int)"))
    with pytest.raises(Rejected) as caught:
        await check(database)
    assert (caught.value.code, caught.value.remedy) == ("SCHEMA_OLD", "run `wms migrate`")
    assert "9998_pre_more" in caught.value.message
    assert await migrate(database) == ["9998_pre_more"]
    await check(database)


async def test_a_newer_schema_is_refused(database: str) -> None:
    await execute(database, "insert into schema_migration values ('9999_pre_future', 'x')")
    for door in (check, migrate):
        with pytest.raises(Rejected) as caught:
            await door(database)
        assert caught.value.code == "SCHEMA_NEW"
        assert "9999_pre_future" in caught.value.message


async def test_an_edited_migration_is_noticed(database: str) -> None:
    await execute(database, f"update schema_migration set digest = 'another' where name = '{KNOWN[0]}'")
    for door in (check, migrate):
        with pytest.raises(Rejected) as caught:
            await door(database)
        assert caught.value.code == "SCHEMA_DRIFT"
        assert KNOWN[0] in caught.value.message


async def test_no_server_is_not_our_fault() -> None:
    for door in (check, migrate):
        with pytest.raises(Unavailable):
            await door("postgresql://nobody@127.0.0.1:1/none")


async def test_an_index_is_built_outside_a_transaction(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many starters too: none waits in a transaction that the build would wait for in turn."""
    text = "-- no transaction\ncreate index concurrently if not exists job_by_name on job (name)"
    know(monkeypatch, Migration("9998_post_job_by_name", text))
    lists = await asyncio.gather(*(migrate(database) for _ in range(3)))
    assert list(chain.from_iterable(lists)) == ["9998_post_job_by_name"]
    (index,) = await rows(
        database, "select indisvalid from pg_index where indexrelid = 'job_by_name'::regclass"
    )
    assert index["indisvalid"]


async def test_statements_outside_a_transaction_run_one_by_one(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres builds an index concurrently, and ends a transaction in a block, only if nothing else was sent with it."""
    text = (
        "-- no transaction\n\ndo $$\nbegin\n    commit;\nend\n$$;\n\n"
        "-- Twice.\ndrop index concurrently if exists twice;\n\ncreate index concurrently twice on job (name);\n"
    )
    migration = Migration("9998_post_twice", text)
    assert len(migration.statements) == 3
    know(monkeypatch, migration)
    assert await migrate(database) == ["9998_post_twice"]
    assert await rows(database, "select 1 from pg_class where relname = 'twice'")


def test_names_are_well_formed_and_follow_each_other() -> None:
    names = [path.stem for path in sorted(FOLDER.iterdir())]
    assert names == KNOWN
    assert all(re.fullmatch(r"[0-9]{4}_(pre|post)_[a-z0-9_]+", name) for name in names)
    numbers = [int(name[:4]) for name in names]
    # Gaps are no matter: what is missing is applied by its name, and work side by side has numbers of its own.
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1


async def test_every_table_says_what_it_is(database: str) -> None:
    found = await rows(
        database,
        """select relname, obj_description(oid, 'pg_class') as comment
           from pg_class where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace""",
    )
    silent = {row["relname"] for row in found if not row["comment"]} - {"schema_migration"}
    assert len(found) > 10
    assert not silent


async def test_every_table_has_a_primary_key(database: str) -> None:
    found = await rows(
        database,
        """select c.relname from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
           and not exists (select 1 from pg_constraint k where k.conrelid = c.oid and k.contype = 'p')""",
    )
    assert not found


async def test_histories_of_before_are_told_as_they_were_and_standing_offers_count(
    empty_database: str,
) -> None:
    known = migrations()
    place = next(n for n, each in enumerate(known) if each.name.startswith("0008"))
    connection = await asyncpg.connect(empty_database)
    for migration in known[:place]:
        await apply(connection, migration)
    await connection.execute(
        """insert into task_queue (key, owner, owner_group, vo, cpu_segment, requirements)
           values (sha256('k'), 'alice', 'user', 'lhcb', 500, '{}');
           insert into job (job_id, description_id, tq_id, owner, owner_group, vo, name, user_priority, max_attempts,
                            state, event_seq, epoch, attempts)
           select n, 1, tq_id, 'alice', 'user', 'lhcb', 'n', 1, 3, state, seq, 1, attempts
           from task_queue, (values (1, 'Done', 5, 1), (2, 'Matched', 3, 0), (3, 'Matched', 3, 1)) as j(n, state, seq, attempts);
           insert into lease (job_id, epoch, seq, pilot_id, request_id, site, ce, phase, expires_at)
           values (2, 1, 3, 'p', 'r', 's', 'c', 'offered', now()), (3, 1, 3, 'p', 'r', 's', 'c', 'accepted', now());
           insert into ended_attempt (job_id, epoch, pilot_id, site, ce, accepted_at, started_at, ended_at, outcome, reason)
           values (1, 1, 'p', 's', 'c', now(), now(), now(), 'done', 'DONE');
           insert into job_move (job_id, seq, before, event, state, epoch, source)
           values (1, 3, 'Waiting', 'match', 'Matched', 1, 'matcher'), (1, 4, 'Matched', 'start', 'Running', 1, 'job_agent'),
                  (1, 5, 'Running', 'finish', 'Done', 1, 'job_agent')"""
    )
    history = "select * from job_event order by job_id, seq"
    before = await connection.fetch(history)
    for migration in known[place:]:
        await apply(connection, migration)
    assert await connection.fetch(history) == before
    counted = await connection.fetch("select attempts from job order by job_id")
    assert [row["attempts"] for row in counted] == [1, 1, 1]
    await connection.close()


# --- the CHECKs and the state table ------------------------------------------------------------------

STRANGERS = ("", "waiting", "Sleeping", "Waiting/match/Matched")


async def expression(url: str, constraint: str) -> str:
    (row,) = await rows(
        url,
        "select distinct pg_get_expr(conbin, conrelid) as text from pg_constraint where conname = $1",
        constraint,
    )
    return str(row["text"])


async def accepted(
    url: str, expression: str, combinations: Sequence[tuple[str | None, str, str]]
) -> set[object]:
    """Return the combinations of (before, event, state) for which the expression holds."""
    found = await rows(
        url,
        f"""select before, event, state from unnest($1::text[], $2::text[], $3::text[]) as t(before, event, state)
            where {expression}""",
        *map(list, zip(*combinations, strict=True)),
    )
    return {tuple(row) for row in found}


async def test_the_states_are_those_of_the_table(database: str) -> None:
    every = [(None, "", state) for state in (*State, *STRANGERS)]
    held = await accepted(database, await expression(database, "job_state"), every)
    assert held == {(None, "", state) for state in State}
    assert held == await accepted(database, state_check(), every)


async def test_the_moves_are_those_of_the_table(database: str) -> None:
    """Every combination of before, event and after: births, legal moves, and nothing else."""
    befores = (None, *State, *STRANGERS)
    every = list(product(befores, (*Event, *STRANGERS), (*State, *STRANGERS)))
    held = await accepted(database, await expression(database, "job_move_legal"), every)
    births = {(before, Event.RECEIVE, state) for before in (None, "") for state in FIRST}
    moves = {(before, event, after) for before, row in TRANSITIONS.items() for event, after in row.items()}
    assert held == births | moves
    assert held == await accepted(database, move_check(), every)


async def test_an_illegal_move_is_refused_by_the_database_itself(database: str) -> None:
    insert = (
        "insert into job_move (job_id, seq, before, event, state, epoch, source) values (1, 1, {}, 0, 'test')"
    )
    await execute(database, insert.format("null, 'receive', 'Received'"))
    for move in ("'Done', 'start', 'Running'", "null, 'match', 'Matched'", "'Waiting', 'match', 'Running'"):
        with pytest.raises(asyncpg.CheckViolationError):
            await execute(database, insert.format(move).replace("(1, 1,", "(1, 2,"))


async def test_an_owner_is_for_ever(database: str) -> None:
    await execute(
        database,
        """insert into task_queue (key, owner, owner_group, vo, cpu_segment, requirements)
           values (sha256('k'), 'alice', 'user', 'lhcb', 500, '{}');
           insert into description (description_id, body) values (1, '{}');
           insert into job (job_id, description_id, tq_id, owner, owner_group, vo, name, user_priority,
                            max_attempts, state, event_seq)
           select 1, description_id, tq_id, 'alice', 'user', 'lhcb', 'n', 1, 3, 'Waiting', 2
           from description cross join task_queue""",
    )
    await execute(database, "update job set owner = 'alice', state = 'Held'")
    for column in ("owner", "owner_group", "vo"):
        with pytest.raises(asyncpg.RaiseError, match="never change"):
            await execute(database, f"update job set {column} = 'mallory'")
