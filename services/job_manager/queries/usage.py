"""Answers about usage: CPU, wall time and memory of ended attempts, and the wasted part, by owner, site and time."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from services.job_manager.queries.paging import page
from wms.auth.policy import scope
from wms.auth.principal import Principal
from wms.db import usage_hour
from wms.db.database import Transaction
from wms.messages import queries as asked
from wms.messages import replies

COLUMNS = {
    "vo": "vo",
    "group": "owner_group",
    "owner": "owner",
    "site": "site",
    "month": "month",
    "day": "day",
}
FAR = datetime(2999, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def show_usage(tx: Transaction, principal: Principal, query: asked.ShowUsage) -> replies.UsageReport:
    """Return the usage of the jobs that the asker may see, the largest usage first. There is one line for each combination of the keys in `query.by`.

    The asked period is extended to whole hours.
    """
    until = FAR if query.until is None else _hour(query.until + HOUR - timedelta(microseconds=1))
    rows = await usage_hour.report(tx, scope(principal, "see"), query.by, _hour(query.since), until)
    lines = sorted(_lines(rows, query.by), key=lambda each: (-each.wall_seconds, each.key))
    taken, after = page(lines, query.after, query.limit)
    return replies.UsageReport(
        query_id=query.query_id, client=query.client, by=query.by, lines=taken, after=after
    )


def _hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _lines(rows: Iterable[asyncpg.Record], by: Sequence[str]) -> list[replies.UsageLine]:
    found: dict[tuple[str, ...], list[asyncpg.Record]] = {}
    for row in rows:
        found.setdefault(tuple(row[COLUMNS[name]] for name in by), []).append(row)
    return [_line(key, each) for key, each in found.items()]


def _line(key: tuple[str, ...], rows: Sequence[asyncpg.Record]) -> replies.UsageLine:
    wall = _sum(rows, "wall_seconds")
    return replies.UsageLine(
        key=key,
        attempts=_sum(rows, "attempts"),
        done=_sum([row for row in rows if row["outcome"] == "done"], "attempts"),
        cpu_seconds=_sum(rows, "cpu_seconds"),
        wall_seconds=wall,
        slot_seconds=_sum(rows, "slot_seconds"),
        mean_rss_bytes=int(_sum(rows, "rss_byte_seconds") / wall) if wall else 0,
        max_rss_bytes=max(row["max_rss_bytes"] for row in rows),
        waste=_waste(rows),
    )


def _waste(rows: Sequence[asyncpg.Record]) -> tuple[replies.WasteLine, ...]:
    """Return the slot seconds of attempts whose outcome is not `done`, summed by reason, the largest first."""
    wasted: dict[str, float] = {}
    for row in rows:
        if row["outcome"] != "done" and row["slot_seconds"]:
            wasted[row["reason"]] = wasted.get(row["reason"], 0.0) + row["slot_seconds"]
    largest = sorted(wasted.items(), key=lambda each: -each[1])
    return tuple(replies.WasteLine(reason=reason, slot_seconds=seconds) for reason, seconds in largest)


def _sum(rows: Sequence[asyncpg.Record], name: str) -> Any:
    return sum(row[name] for row in rows)
