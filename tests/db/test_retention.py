"""What ended long ago is forgotten whole, what did not stays whole, and history always has room."""

import asyncpg
import msgspec
import pytest

from services.job_manager.config import RetentionSettings
from services.job_manager.maintenance.retention import Retention
from tests.db.aged import age, count, done, forget
from tests.services.world import World, result, user, world
from wms.audit.auditor import audit
from wms.ids import AttemptId, CommandId, JobId
from wms.job.reasons import Code
from wms.messages import replies
from wms.messages.commands import AddChunks, LongLists, Submit

SIZE = 5_000_000


async def test_predecessors_stay_while_others_are_to_start_after_them(database: str) -> None:
    async with world(database) as place:
        (alone,), (held,) = await done(place), await place.running()
        sweep = await place.swept(3)
        await place.order("kill", *sweep)
        (after,) = await place.submitted(after=[alone, held[0]], after_any=[f"{sweep[0]}-{sweep[2]}"])
        await age(place, 400, alone, *sweep)
        await forget(place)
        assert await count(place, "job", alone) == 1
        assert len(await place.sql("select from sweep")) == 1
        await place.report(finish=(result(held),))
        await place.settle()
        assert await place.state(after) == "Waiting"
        await forget(place)
        assert await count(place, "job", alone) == 0
        assert len(await place.sql("select from sweep")) == 0
        assert (await audit(database)).ok


async def test_a_sweep_goes_when_all_of_its_jobs_ended_long_ago(database: str) -> None:
    async with world(database) as place:
        ids = await place.swept(10, name="s-{n}")
        held = await place.match(slots=4)
        await place.report(accept=tuple(held))
        await place.report(start=tuple(held), finish=tuple(result(each) for each in held))
        await age(place, 400, *ids)
        await forget(place)
        assert len(await place.sql("select from sweep")) == 1
        await place.order("kill", *ids)
        await age(place, 400, *ids)
        await forget(place)
        for table in ("sweep", "block", "job", "job_move", "ended_attempt", "description", "forgetting"):
            assert await place.sql(f"select from {table}") == [], table
        assert (await audit(database)).ok


async def test_edited_jobs_go_with_their_descriptions_and_leave_those_of_others(database: str) -> None:
    async with world(database) as place:
        ids, (alone,), (other,) = await place.swept(5), await place.submitted(), await place.submitted()
        assert (await place.order("edit", *ids[:2], alone, memory_mb=300)).changed == 3
        assert len(await place.sql("select from description")) == 5
        await place.order("kill", *ids, alone)
        await age(place, 400, *ids, alone)
        await forget(place)
        (left,) = await place.sql("select description_id from description")
        assert left["description_id"] == other
        assert (await audit(database)).ok


async def test_a_job_brought_back_is_not_forgotten(database: str) -> None:
    async with world(database) as place:
        ((job_id, epoch),) = await place.running()
        await place.report(finish=(result(AttemptId(job_id, epoch), "failed", Code.EXIT_CODE, exit_code=1),))
        await age(place, 400, job_id)
        await place.order("reschedule", job_id)
        await forget(place)
        assert await place.state(job_id) == "Waiting"


async def test_what_other_clusters_were_read_to_is_forgotten_but_never_the_last(database: str) -> None:
    insert = (
        "insert into consumer_offset (cluster_id, consumer, topic, partition, next_offset, moved_at)"
        " values ($1, $2, 't', 0, 1, now() - $3 * interval '1 d')"
    )
    async with world(database) as place:
        for cluster, consumer, days in (("left", "a", 100), ("here", "a", 95), ("left", "b", 10)):
            await place.sql(insert, cluster, consumer, days)
        await forget(place)
        rows = await place.sql("select cluster_id, consumer from consumer_offset order by consumer")
        assert [tuple(row) for row in rows] == [("here", "a"), ("left", "b")]


async def partitions(place: World) -> dict[str, int]:
    """The tables of history, each with its rows."""
    names = await place.sql(
        "select inhrelid::regclass::text as name from pg_inherits"
        " where inhparent in ('job_move'::regclass, 'ended_attempt'::regclass)"
    )
    found = {}
    for row in names:
        (counted,) = await place.sql(f"select count(*) as n from {row['name']}")
        found[row["name"]] = counted["n"]
    return found


async def held_and_done(place: World) -> JobId:
    """Let a job live that has moves of its own beside those that its attempt tells: two rows and one."""
    (job_id,) = await place.submitted()
    await place.order("hold", job_id)
    await place.order("release", job_id)
    (held,) = await place.match()
    await place.report(accept=(held,), start=(held,), finish=(result(held),))
    return job_id


async def given_out(place: World, job_id: int) -> None:
    """Let that be the last id that was given out."""
    await place.sql("select setval('job_id_seq', $1)", job_id)


async def test_history_goes_where_its_id_belongs(database: str) -> None:
    async with world(database) as place:
        await held_and_done(place)
        await given_out(place, 2 * SIZE + 7)
        assert await held_and_done(place) == 2 * SIZE + 8
        assert {name: rows for name, rows in (await partitions(place)).items() if rows} == {
            "job_move_first": 2,
            "ended_attempt_first": 1,
            "job_move_2": 2,
            "ended_attempt_2": 1,
        }


async def test_what_had_no_room_is_moved_when_there_is(database: str) -> None:
    async with world(database) as place:
        await given_out(place, 9 * SIZE - 3)
        ids = [await held_and_done(place) for _ in range(4)]
        before = [await place.history(job_id) for job_id in ids]
        found = await partitions(place)
        assert (found["job_move_rest"], found["ended_attempt_rest"]) == (8, 4)
        await given_out(place, 8 * SIZE)
        await Retention(place.db, RetentionSettings()).make_room()
        found = await partitions(place)
        assert (found["job_move_9"], found["job_move_rest"]) == (4, 4)
        assert (found["ended_attempt_9"], found["ended_attempt_rest"]) == (2, 2)
        assert [await place.history(job_id) for job_id in ids] == before
        assert (await audit(database)).ok


async def test_room_is_made_ahead_of_the_ids(database: str) -> None:
    async with world(database) as place:
        keeper = Retention(place.db, RetentionSettings())
        await given_out(place, 6 * SIZE + 1)
        await keeper.make_room()
        first = await partitions(place)
        await keeper.make_room()
        assert await partitions(place) == first
        assert {f"job_move_{n}" for n in range(7, 11)} <= first.keys()


async def test_a_table_goes_when_nothing_is_left_in_it(database: str) -> None:
    async with world(database) as place:
        await given_out(place, SIZE)
        (old,) = await done(place)
        await given_out(place, 2 * SIZE)
        (young,) = await done(place)
        await given_out(place, 6 * SIZE)
        await age(place, 400, old)
        await forget(place)
        assert not {"job_move_1", "job_move_3", "job_move_4"} & (await partitions(place)).keys()
        assert {"job_move_first", "job_move_2", "job_move_rest"} <= (await partitions(place)).keys()
        assert await place.state(young) == "Done"


async def test_history_there_was_is_kept_by_the_migration(empty_database: str) -> None:
    from wms.db.migrate import migrations

    connection = await asyncpg.connect(empty_database)
    known = migrations()
    place = next(n for n, each in enumerate(known) if each.name.startswith("0006"))
    for migration in known[:place]:
        await connection.execute(migration.sql)
    await connection.execute("select setval('job_id_seq', 12000000)")
    await connection.execute(
        "insert into job_move (job_id, seq, before, event, state, epoch, source)"
        " values (11999999, 3, 'Waiting', 'match', 'Matched', 1, 't')"
    )
    for migration in known[place:]:
        for part in [migration.sql] if migration.in_transaction else migration.statements:
            await connection.execute(part)
    bound = await connection.fetchval(
        "select pg_get_expr(relpartbound, oid) from pg_class where relname = 'job_move_first'"
    )
    assert bound == "FOR VALUES FROM (MINVALUE) TO ('15000000')"
    assert await connection.fetchval("select count(*) from job_event where job_id = 11999999") == 1
    assert await connection.fetchval("select to_regclass('job_move_3')") == "job_move_3"
    await connection.close()


async def test_lists_whose_submission_never_came_go_with_the_commands_that_brought_them(
    database: str,
) -> None:
    async with world(database) as place:
        chunk = {"seed": msgspec.Raw(msgspec.json.encode(list(map(str, range(5)))))}
        for part in ("used", "abandoned", "young"):
            await place.command(user(), AddChunks(command_id=CommandId(part), chunks=(chunk,)))
        job = msgspec.Raw(b'{"executable": "true", "arguments": ["{seed}"], "array": 5}')
        lists = (LongLists(job=0, parts=(CommandId("used"),)),)
        (reply,) = await place.command(user(), Submit(command_id=CommandId("c"), jobs=(job,), lists=lists))
        assert isinstance(reply, replies.Submitted), reply
        await place.sql(
            "update unused_part set kept_at = kept_at - interval '2 h' where command_id <> 'young'"
        )
        await forget(place)
        left = await place.sql(
            "select body::text as body from parameter join description using (description_id)"
        )
        assert sorted(row["body"] == "null" for row in left) == [False, True], (
            "the sweep's, and the young one"
        )
        assert len(await place.sql("select from description")) == 2
        left = await place.sql("select command_id from submission order by 1")
        assert [row["command_id"] for row in left] == ["c", "used", "young"]
        # What is sent again is taken again: nobody is told that it is kept.
        await place.command(user(), AddChunks(command_id=CommandId("abandoned"), chunks=(chunk,)))
        assert len(await place.sql("select from unused_part")) == 2


async def test_an_owner_has_no_more_unused_lists_than_there_is_room_for(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.job_manager.submission.parameter_lists.UNUSED_PARTS", 2)
    async with world(database) as place:
        chunk = {"seed": msgspec.Raw(msgspec.json.encode(list(map(str, range(5)))))}

        async def add(name: str, owner: str = "ann") -> object:
            (reply,) = await place.command(
                user(owner), AddChunks(command_id=CommandId(name), chunks=(chunk,))
            )
            return reply

        for name in ("one", "two"):
            assert isinstance(await add(name), replies.ValuesKept)
        refused = await add("three")
        assert isinstance(refused, replies.Refused)
        assert refused.code == "TOO_MANY_UNUSED_LISTS"
        assert "forgotten after an hour" in refused.remedy
        assert isinstance(await add("two"), replies.ValuesKept), "sent again, it is known"
        assert isinstance(await add("three", "bob"), replies.ValuesKept)
        await place.sql("update unused_part set kept_at = kept_at - interval '2 h'")
        await forget(place)
        assert isinstance(await add("three"), replies.ValuesKept)
        monkeypatch.setattr("services.job_manager.submission.parameter_lists.UNUSED_BYTES", 9)
        assert isinstance(await add("four"), replies.Refused)
