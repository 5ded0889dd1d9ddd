"""Retention: how long the job manager keeps what, and in what order it forgets."""

import pytest

from services.job_manager.config import DAY, RetentionSettings
from services.job_manager.maintenance.retention import BATCH, Retention
from tests.db.aged import age, count, done, forget
from tests.services.world import World, world
from wms.audit.auditor import audit
from wms.db import ce_state
from wms.ids import CeId
from wms.provisioning.health import HealthChange, HealthPolicy


async def test_a_job_that_ended_long_ago_goes_whole_and_others_stay_whole(database: str) -> None:
    async with world(database) as place:
        (old,), (young,) = await done(place), await done(place)
        (waiting,) = await place.submitted()
        before = await place.history(young)
        await age(place, 400, old, waiting)
        await forget(place)
        for table in ("job", "job_move", "ended_attempt", "job_event", "attempt"):
            assert await count(place, table, old) == 0
        assert await place.history(young) == before
        assert await place.state(waiting) == "Waiting"
        assert len(await place.sql("select from description")) == 2
        assert (await audit(database)).ok


async def test_a_removed_job_goes_earlier(database: str) -> None:
    async with world(database) as place:
        kept, removed = await done(place, 2, name="other"), await done(place)
        await place.order("remove", *removed)
        await age(place, 40, *kept, *removed)
        await forget(place)
        assert await count(place, "job", *kept) == 2
        assert await count(place, "job", *removed) == 0
        assert (await audit(database)).ok


async def test_more_than_a_batch_is_looked_at(database: str) -> None:
    """Waiting jobs at the front do not hide what is old behind them."""
    async with world(database) as place:
        for _ in range(3):
            await place.submit(*({} for _ in range(BATCH // 2)))
        ids = [row["job_id"] for row in await place.sql("select job_id from job order by job_id")]
        await place.order("kill", *ids[-10:])
        await age(place, 400, *ids)
        await forget(place)
        assert await count(place, "job", *ids) == len(ids) - 10


async def test_a_submission_is_known_for_its_time(database: str) -> None:
    async with world(database) as place:
        old, young = await place.submitted(), await place.submitted()
        await age(place, 31, *old)
        await forget(place)
        (left,) = await place.sql("select ids::text as ids from submission")
        assert left["ids"] == f"[[{young[0]}, {young[0]}]]"
        assert (await audit(database)).ok


def test_submissions_are_not_kept_longer_than_jobs() -> None:
    with pytest.raises(ValueError, match="submissions_seconds"):
        RetentionSettings(submissions_seconds=31 * DAY)


async def test_pilots_that_ended_long_ago_go_and_their_attempts_stay(database: str) -> None:
    async with world(database) as place:
        (job_id,) = await done(place)
        await age(place, 100, job_id)
        await place.sql("update pilot set ended_at = now() - interval '99 d', state = 'Done'")
        await place.sql(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots) values ('p-2', 'A', 'ce', 'lhcb', 'local', 1)"
        )
        await forget(place)
        assert [row["pilot_id"] for row in await place.sql("select pilot_id from pilot")] == ["p-2"]
        assert len(await place.attempts(job_id)) == 1
        report = await audit(database)
        assert report.ok, report.text(brief=True)


async def test_what_was_said_of_elements_long_ago_goes_but_not_how_they_came_to_be_as_they_are(
    database: str,
) -> None:
    async with world(database) as place:
        for element, events in {
            "a": ("eat", "probe", "release"),
            "b": ("ban", "ban"),
            "c": ("fail",),
        }.items():
            for event in events:
                async with place.db.transaction() as tx:
                    moved = HealthChange(event, "because", "oz")  # type: ignore[arg-type]
                    await ce_state.move(tx, CeId("A", element), moved, HealthPolicy())
        await place.sql("update ce_move set at = at - interval '366 d' where ce <> 'c'")
        await place.sql("update ce_state set since = since - interval '366 d' where ce <> 'c'")
        for ce, outcome, days in (("a", "Done", 366), ("b", "late", 364), ("c", None, 400)):
            await place.sql(
                "insert into canary (job_id, site, ce, sent_at, outcome, ended_at) values"
                " (ascii($1), 'A', $1, now() - $3 * interval '1 d', $2,"
                " case when $2::text is not null then now() - $3 * interval '1 d' end)",
                *(ce, outcome, days),
            )
        await forget(place)
        left = await place.sql("select ce, event from ce_move order by ce_move_id")
        assert [tuple(row) for row in left] == [
            ("a", "release"),
            ("b", "ban"),
            ("b", "ban"),
            ("c", "fail"),
        ]
        assert [row["ce"] for row in await place.sql("select ce from canary order by ce")] == ["b", "c"]
        report = await audit(database)
        assert report.ok, report.text(brief=True)


async def letters(place: World, count: int, owner: str | None, size: int = 10, days: int = 0) -> None:
    principal = None if owner is None else f'{{"owner": "{owner}"}}'
    await place.sql(
        "insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, payload, principal, error, arrived_at)"
        " select 'c', 'k', 't', 0, (select coalesce(max(message_offset), 0) from dead_letter) + n, convert_to(repeat('x', $2), 'UTF8'), $3::text::jsonb,"
        " 'junk', now() - $4 * interval '1 d' from generate_series(1, $1) as n",
        *(count, size, principal, days),
    )


async def left_of(place: World) -> dict[str | None, int]:
    rows = await place.sql("select principal ->> 'owner' as owner, count(*) as n from dead_letter group by 1")
    return {row["owner"]: row["n"] for row in rows}


async def test_dead_letters_have_an_age_a_number_and_a_size(database: str) -> None:
    async with world(database) as place:
        await letters(place, 3, "old", days=31)
        await letters(place, 4, "ann", days=2)
        await forget(place)
        assert await left_of(place) == {"ann": 4}
        keeper = Retention(place.db, RetentionSettings(dead_letters_most=80))
        await letters(place, 300, None)
        await keeper.bound_dead_letters()
        assert await left_of(place) == {"ann": 4, None: 10}, "whoever floods loses one's own, not others'"
        sized = Retention(place.db, RetentionSettings(dead_letters_bytes=8 << 20))
        await letters(place, 5, "eve", size=500_000)
        await sized.bound_dead_letters()
        assert await left_of(place) == {"ann": 4, None: 10, "eve": 2}
