"""Jobs whose times are moved into the past."""

from typing import Any

from services.job_manager.config import RetentionSettings
from services.job_manager.maintenance.retention import Retention
from tests.services.world import World, result
from wms.ids import JobId


async def done(place: World, count: int = 1, **description: Any) -> list[JobId]:
    held = await place.running(count, **description)
    await place.report(finish=tuple(result(each) for each in held))
    return [job_id for job_id, _ in held]


async def age(place: World, days: float, *job_ids: int) -> None:
    """Let so many days pass for these jobs and whatever was submitted with them."""
    ids = list(job_ids)
    for statement in (
        (
            f"update job set submitted_at = submitted_at - interval '{days} d', changed_at = changed_at - interval '{days} d'"
            " where job_id = any ($1)"
        ),
        (
            f"update ended_attempt set offered_at = offered_at - interval '{days} d', ended_at = ended_at - interval '{days} d',"
            f" accepted_at = accepted_at - interval '{days} d', started_at = started_at - interval '{days} d'"
            " where job_id = any ($1)"
        ),
        f"update job_move set at = at - interval '{days} d' where job_id = any ($1)",
        f"update submission set taken_at = taken_at - interval '{days} d' where (ids -> 0 ->> 0)::bigint = any ($1)",
        "alter table sweep disable trigger all",
        f"update sweep set submitted_at = submitted_at - interval '{days} d' where first = any ($1)",
        "alter table sweep enable trigger all",
        f"update block set changed_at = changed_at - interval '{days} d' where sweep = any ($1)",
    ):
        await place.sql(statement, *([ids] if "$1" in statement else []))


async def forget(place: World) -> None:
    await Retention(place.db, RetentionSettings()).forget()


async def count(place: World, table: str, *job_ids: int) -> int:
    rows = await place.sql(f"select from {table} where job_id = any ($1)", list(job_ids))
    return len(rows)
