"""Answers about fair shares and limits: groups with their jobs and usage, and limits with their counts."""

from collections.abc import Collection, Iterable, Mapping

import asyncpg
import msgspec

from services.job_manager.queries.paging import page
from wms.auth.policy import allowed, scope
from wms.auth.principal import Principal
from wms.db import limit, queue_stats, share, usage
from wms.db.database import Transaction
from wms.db.share import SourcedShare
from wms.ids import Identity
from wms.matching.shares import VoGroup
from wms.matching.usage import factors
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.limits import Limit

HOUR = 3_600.0


async def list_shares(
    tx: Transaction, principal: Principal, query: asked.ListShares, half_life_hours: float
) -> replies.Shares:
    """Return a page of the groups of the asker's VO, or of all VOs for operators.

    `half_life_hours` is that of recorded usage; 0: usage is not recorded.
    """
    everywhere = scope(principal, "set_shares").reach == "all"
    vo = None if everywhere else principal.vo
    said = {group: each for group, each in (await share.sourced(tx)).items() if vo in (None, group[0])}
    used = await usage.read(tx, half_life_hours * HOUR) if half_life_hours else {}
    used = {owner: seconds for owner, seconds in used.items() if vo in (None, owner.vo)}
    standing = await share.standing(tx, vo, watched=await queue_stats.is_watched(tx))
    shares, after = page(list(_lines(said, standing, used)), query.after, query.limit)
    return replies.Shares(query_id=query.query_id, client=query.client, shares=shares, after=after)


async def list_limits(tx: Transaction, principal: Principal, query: asked.ListLimits) -> replies.LimitList:
    """Return a page of the limits, and of the counts that they limit. Counts of other owners are shown to operators only."""
    everything = allowed(principal, "administer", "", "", "")
    limits = [
        replies.LimitLine(
            limit=Limit(**msgspec.structs.asdict(each.limit)),
            lifted=each.lifted,
            source=each.source,
            said_by=each.said_by,
        )
        for each in await limit.sourced(tx)
    ]
    counts = [
        replies.CountLine(**key._asdict(), running=count.running)
        for key, count in (await limit.all_counts(tx)).items()
        if everything or key.attribute != "owner" or key.value == principal.owner
    ]
    # Both lists, one after the other, in pages.
    lines, after = page([*limits, *counts], query.after, query.limit)
    return replies.LimitList(
        query_id=query.query_id,
        client=query.client,
        limits=tuple(each for each in lines if isinstance(each, replies.LimitLine)),
        counts=tuple(each for each in lines if isinstance(each, replies.CountLine)),
        after=after,
    )


def _lines(
    said: Mapping[VoGroup, SourcedShare], owners: Iterable[asyncpg.Record], used: Mapping[Identity, float]
) -> Iterable[replies.ShareLine]:
    standing: dict[VoGroup, list[asyncpg.Record]] = {}
    for row in owners:
        standing.setdefault((row["vo"], row["owner_group"]), []).append(row)
    waiting = {group: {row["owner"] for row in rows if row["waiting"]} for group, rows in standing.items()}
    counting = factors(waiting, {group: each.share for group, each in said.items()}, used)
    for group in sorted(said.keys() | standing.keys()):
        held = said.get(group, share.NOTHING_SAID)
        rows = standing.get(group, [])
        yield replies.ShareLine(
            vo=group[0],
            owner_group=group[1],
            **msgspec.structs.asdict(held.share),
            source=held.source,
            said_by=held.said_by,
            owners=sum(row["waiting"] > 0 for row in rows),
            waiting_jobs=sum(row["waiting"] for row in rows),
            running_jobs=sum(row["running"] for row in rows),
            used_hours=sum(seconds for owner, seconds in used.items() if (owner.vo, owner.group) == group)
            / HOUR,
            effective_share=held.share.job_share * _mean(counting.get(group, {}).values()),
        )


def _mean(factors: Collection[float]) -> float:
    return sum(factors) / len(factors) if factors else 1.0
