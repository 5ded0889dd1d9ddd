"""Answers with an overview of the system: recent failures, why jobs wait, pilots that were lost, and the health of the services."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import asyncpg
import msgspec

from services.job_manager.queries.kept_counts import KeptCounts
from wms.auth.policy import Scope, allowed, scope
from wms.auth.principal import Principal
from wms.db import instance, overview, queue_stats
from wms.db.database import Transaction
from wms.job.wait_reason_codes import WAIT_ADVICE, WaitCode
from wms.messages import queries as asked
from wms.messages import replies
from wms.runtime.service_health import Heartbeat, partitions, problems

RECENT_SECONDS = 3_600.0
"""The overview counts attempts and pilots that ended within this many seconds."""
WAITS = tuple(WaitCode)

KeptOutcomes: TypeAlias = KeptCounts[None, list[asyncpg.Record]]
"""How attempts of all owners ended lately."""


async def recent_outcomes(tx: Transaction, sees: Scope, kept: KeptOutcomes) -> list[replies.OutcomeLine]:
    """Return the outcomes of the jobs in a scope, the largest first. Those of everybody are always read anew, which costs less."""
    if sees.reach == "all":
        return [replies.OutcomeLine(**row) for row in await overview.outcomes(tx, RECENT_SECONDS)]
    rows = await kept.read(None, lambda _: overview.outcomes_of_owners(tx, RECENT_SECONDS))
    return _summed(row for row in rows if sees.covers(row["owner"], row["owner_group"], row["vo"]))


def _summed(rows: Iterable[asyncpg.Record]) -> list[replies.OutcomeLine]:
    found: dict[tuple[str, str, str], list[asyncpg.Record]] = {}
    for row in rows:
        found.setdefault((row["site"], row["outcome"], row["reason"]), []).append(row)
    lines = [
        replies.OutcomeLine(
            site=site,
            outcome=outcome,
            reason=reason,
            attempts=sum(row["attempts"] for row in each),
            last_job=max(row["last_job"] for row in each),
            last_at=max(row["last_at"] for row in each),
        )
        for (site, outcome, reason), each in found.items()
    ]
    return sorted(lines, key=lambda line: (-line.attempts, line.site, line.outcome, line.reason))


async def show_overview(
    tx: Transaction, principal: Principal, query: asked.ShowOverview, kept: KeptOutcomes
) -> replies.Overview:
    """Return the overview of what the asker may see."""
    sees = scope(principal, "see")
    vo = None if allowed(principal, "administer", "", "", "") else principal.vo
    now = await tx.now()
    ends = await overview.pilot_ends(tx, vo, RECENT_SECONDS)
    return replies.Overview(
        query_id=query.query_id,
        client=query.client,
        since=now - timedelta(seconds=RECENT_SECONDS),
        outcomes=tuple(await recent_outcomes(tx, sees, kept)),
        waits=await _waits(tx, sees),
        pilot_ends=tuple(replies.PilotEndLine(**row) for row in ends),
        services=tuple(_services(await instance.instances(tx), now)),
    )


async def _waits(tx: Transaction, sees: Scope) -> tuple[replies.WaitLine, ...]:
    rows = await overview.waits(tx, sees, watched=await queue_stats.is_watched(tx))
    ordered = sorted(rows, key=lambda row: WAITS.index(WaitCode(row["code"])))
    return tuple(
        replies.WaitLine(**{**row, "advice": WAIT_ADVICE.get(WaitCode(row["code"]), "")}) for row in ordered
    )


def _services(rows: Sequence[asyncpg.Record], now: datetime) -> Iterator[replies.ServiceLine]:
    beats = [_heartbeat(row) for row in rows]
    for service in sorted({beat.service for beat in beats}):
        yield _service(service, [beat for beat in beats if beat.service == service], now)


def _service(service: str, beats: Sequence[Heartbeat], now: datetime) -> replies.ServiceLine:
    living = [beat for beat in beats if beat.alive]
    return replies.ServiceLine(
        service=service,
        instances=len(living),
        since=min((beat.started_at for beat in living), default=max(beat.heartbeat_at for beat in beats)),
        lag=sum(beat.lag() for beat in living),
        problems=tuple(problems(beats, partitions(living, now))),
    )


def _heartbeat(row: asyncpg.Record) -> Heartbeat:
    names = ("service", "alive", "pid", "started_at", "heartbeat_at")
    return Heartbeat(health=msgspec.json.decode(row["health"]), **{name: row[name] for name in names})
