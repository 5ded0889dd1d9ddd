"""Limits on jobs in the database, from the configuration file, operators or ads, and counters of the jobs under them.

Each lease holds the ids of the counters that include it. Counters are locked before they change, always in the order of ids. So no limit is
exceeded, and no deadlock arises.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Literal, NamedTuple

import asyncpg
import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.share import tell_changed
from wms.db.sql import load
from wms.ids import CeId, Epoch, JobId, TaskQueueId
from wms.matching.limits import Count, Counts, Kind, LimitKey, LimitRule, all_jobs
from wms.messages import limits as limited
from wms.messages import queue_changes

SQL = load(__file__)

LISTED = 10_000
"""How many counters `all_counts` returns at most."""


class SourcedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit on jobs, its source, who set it and when, and whether it was lifted at run time."""

    limit: LimitRule
    lifted: bool
    source: Literal["set", "file"]
    said_by: str
    said_at: datetime


class LockedCounter(NamedTuple):
    """A counter of jobs under a limit, which the transaction has locked."""

    counter_id: int
    level: Count
    at: datetime
    """The database's time when the lock was obtained."""


class AdAllowance(NamedTuple):
    """What the ad of a computing element states: how many further jobs it takes until its next ad. None: no limit."""

    allowed: int | None
    lifetime_seconds: float
    observed_at: datetime | None = None
    """When the ad's source counted the computing element's jobs; None: just now. Jobs sent later are not in its count."""
    current: int = 0
    """The number of jobs that the ad's source counted at the computing element."""
    sees_jobs: bool = True
    """Whether the ad's source counts the jobs that pilots run; otherwise it counts the pilots."""


class AdvertisedLimits(NamedTuple):
    """The computing elements whose ads state a limit, and the version number of this set."""

    generation: int
    """A number that rises whenever a computing element begins to state a limit."""
    places: AbstractSet[CeId]


class LimitedLease(NamedTuple):
    """A lease with those values, of the lease and its job, that decide which limits apply to it."""

    job_id: JobId
    epoch: Epoch
    site: str
    ce: str
    tq_id: TaskQueueId
    counted: frozenset[int]
    """The ids of the counters that include the lease."""


async def sourced(tx: Transaction) -> list[SourcedLimit]:
    """Return the limits of the configuration file and of operators. Limits of the file that operators lifted are included, and marked."""
    return [_said(row) for row in await tx.fetch(SQL["read"])]


def _said(row: asyncpg.Record) -> SourcedLimit:
    named = {name: row[name] for name in ("kind", "site", "ce", "attribute", "value", "per_second")}
    return SourcedLimit(
        limit=LimitRule(**named, most=row["most"] or 0),
        lifted=row["most"] is None,
        source=row["source"],
        said_by=row["said_by"],
        said_at=row["said_at"],
    )


def holding(said: Iterable[SourcedLimit]) -> list[LimitRule]:
    """Return the rules of those limits that are not lifted. The database is not accessed."""
    return [each.limit for each in said if not each.lifted]


async def set_limit(tx: Transaction, limit: LimitRule, said_by: str) -> None:
    """Set a limit and tell the matchers. It overrides a limit of the configuration file with the same kind and key.

    `said_by` is the operator.
    """
    await _say(tx, limit.kind, limit.key, limit.most, limit.per_second, said_by)


async def lift(tx: Transaction, kind: Kind, key: LimitKey, said_by: str) -> None:
    """Lift the limit with this kind and key, even one of the configuration file, and tell the matchers. `said_by` is the operator."""
    await _say(tx, kind, key, None, None, said_by)


async def _say(  # noqa: PLR0917 - the columns of a rule
    tx: Transaction, kind: Kind, key: LimitKey, most: int | None, per_second: float | None, said_by: str
) -> None:
    await tx.execute(SQL["set"], kind, *key, most, per_second, said_by)
    tell_changed(tx)


async def reset(tx: Transaction, kind: Kind, key: LimitKey) -> bool:
    """Delete what an operator set or lifted, so that the configuration file's limit applies again, and tell the matchers.

    Return whether there was anything to delete.
    """
    was_set = bool(await tx.execute(SQL["reset"], kind, *key))
    tell_changed(tx)
    return was_set


async def replace_configured(tx: Transaction, limits: Iterable[LimitRule]) -> None:
    """Replace the stored limits of the configuration file by these. If any of them changed, tell the matchers."""
    rows = [(each.kind, *each.key, each.most, each.per_second) for each in limits]
    columns = dense(rows, 7)
    dropped = await tx.execute(SQL["drop_file"], *columns)
    written = await tx.execute(SQL["write_file"], *columns)
    if dropped or written:
        tell_changed(tx)


async def lock(tx: Transaction, keys: AbstractSet[LimitKey], *, wait: bool) -> dict[LimitKey, LockedCounter]:
    """Lock the counters of these keys until the transaction ends, and return them with their counts.

    With `wait`, wait for locked counters and create missing ones. A caller that already holds counters must not wait for more. Without
    `wait`, counters that are missing or locked by others are left out.
    """
    columns = dense(sorted(keys), 4)
    statement = SQL["lock"] if wait else SQL["lock_free"]
    found = {_key(row): _locked(row) for row in await tx.fetch(statement, *columns)}
    if wait and len(found) < len(keys):
        await _make(tx, keys - found.keys())
        found = {_key(row): _locked(row) for row in await tx.fetch(statement, *columns)}
    return found


async def _make(tx: Transaction, keys: Collection[LimitKey]) -> None:
    await tx.execute(SQL["make"], *dense(sorted(keys), 4))


def _locked(row: asyncpg.Record) -> LockedCounter:
    refilled = row["refilled_at"]
    idle = (row["at"] - refilled).total_seconds() if refilled is not None else None
    level = Count(row["running"], row["tokens"], idle, row["allowed"], row["matched"], row["sent"])
    return LockedCounter(row["counter_id"], level, row["at"])


async def settle(  # noqa: PLR0917 - what was, what was taken, what is left
    tx: Transaction,
    locked: Mapping[LimitKey, LockedCounter],
    taken: Mapping[LimitKey, int],
    left: Counts,
    awaited: Collection[LimitKey],
    claimed: Mapping[JobId, Collection[LimitKey]],
) -> None:
    """Count claimed jobs in the locked counters, and store in each job's lease the ids of its counters.

    `taken` has the number of claims, and `left` the new counts, of each key. `claimed` has the keys under which each job is counted. For
    keys in `awaited`, matchers are told once the counter has room.
    """
    rows = [
        (each.counter_id, taken[key], left[key].tokens, _filled(each, left[key]), key in awaited)
        for key, each in locked.items()
    ]
    numbers = [",".join(str(locked[key].counter_id) for key in keys) for keys in claimed.values()]
    await tx.execute(SQL["settle"], *dense(rows, 5), list(claimed), numbers)


def _filled(locked: LockedCounter, left: Count) -> datetime | None:
    return None if left.idle_seconds is None else locked.at


async def give_back(tx: Transaction, counted: Iterable[int]) -> None:
    """Reduce counters for leases that ended. `counted` has the id of a counter once for each ended lease.

    Tell the matchers which of the counters that they wait for have room now.
    """
    ended = Counter(counted)
    if not ended:
        return
    rows = await tx.fetch(SQL["give_back"], list(ended), list(ended.values()))
    if rows:
        tx.send(queue_changes.TOPIC, "", _opened(_key(row) for row in rows))


def _opened(keys: Iterable[LimitKey]) -> queue_changes.Opened:
    return queue_changes.Opened(keys=tuple(limited.CounterKey(*key) for key in keys))


async def counts(tx: Transaction, keys: Collection[LimitKey]) -> dict[LimitKey, Count]:
    """Return the present counts of these keys. Keys without a counter are absent."""
    return {_key(row): _count(row) for row in await tx.fetch(SQL["counts"], *dense(sorted(keys), 4))}


async def all_counts(tx: Transaction) -> dict[LimitKey, Count]:
    """Return the present counts of the keys whose counters are in use, at most `LISTED`."""
    return {_key(row): _count(row) for row in await tx.fetch(SQL["all_counts"], LISTED)}


def _count(row: asyncpg.Record) -> Count:
    return Count(
        row["running"], row["tokens"], row["idle_seconds"], row["allowed"], row["matched"], row["sent"]
    )


async def advertise(tx: Transaction, ads: Mapping[CeId, AdAllowance]) -> None:
    """Store the limits that new ads state, and restart the counts of matched jobs. Tell the matchers which awaited elements have room now.

    The transaction must not have locked any counter before the call.
    """
    limited = sorted(place for place, each in ads.items() if each.allowed is not None)
    if limited:
        if await tx.fetchval(SQL["begins"], *dense(limited)):
            await tx.execute(SQL["begin"])
        await _make(tx, {all_jobs(*place) for place in limited})
    places = sorted(ads)
    # The statement that counts must see pilots that others store under these locks.
    await tx.fetch(SQL["hold_ads"], *dense(places, 2))
    columns = dense([(*place, *ads[place]) for place in places], 7)
    rows = await tx.fetch(SQL["advertise"], *columns)
    if opened := tuple(all_jobs(row["site"], row["ce"]) for row in rows):
        tx.send(queue_changes.TOPIC, "", _opened(opened))


async def end_ads(tx: Transaction, places: Collection[CeId]) -> None:
    """Store that the ads of these computing elements ended. One that stated a limit then admits no job until its next ad."""
    if places:
        await tx.execute(SQL["end_ads"], *dense(sorted(places), 2))


async def advertising(tx: Transaction) -> AdvertisedLimits:
    """Return the computing elements whose ads state a limit, with the version number of this set."""
    # The generation is read first: later elements are then seen twice, and not missed.
    generation = await tx.fetchval(SQL["generation"])
    places = {CeId(row["site"], row["ce"]) for row in await tx.fetch(SQL["advertising"])}
    return AdvertisedLimits(generation, frozenset(places))


async def pilots_left(tx: Transaction) -> dict[CeId, int]:
    """Return how many more pilots each computing element admits. Elements whose ads state no limit are absent."""
    return {CeId(row["site"], row["ce"]): row["left"] for row in await tx.fetch(SQL["pilots_left"])}


async def count_pilots(tx: Transaction, wanted: Mapping[CeId, int]) -> dict[CeId, int]:
    """Count pilots that are about to be sent, `wanted` to each computing element. Return how many each element admits of these.

    Elements whose ads state no limit are absent: they admit all.
    """
    columns = dense([(*place, wanted[place]) for place in sorted(wanted)], 3)
    await tx.execute(SQL["hold"])
    return {
        CeId(row["site"], row["ce"]): row["granted"] for row in await tx.fetch(SQL["count_pilots"], *columns)
    }


async def leased(tx: Transaction, after: int, limit: int) -> list[LimitedLease]:
    """Return up to `limit` leases of jobs with ids above `after`, in the order of job ids."""
    rows = await tx.fetch(SQL["leased"], after, limit)
    return [LimitedLease(**{**row, "counted": frozenset(row["counted"])}) for row in rows]


async def count_in(tx: Transaction, missing: Mapping[LimitedLease, Collection[LimitKey]]) -> None:
    """Count leases under further keys. `missing` has these keys for each lease; missing counters are created.

    Leases that ended, or whose jobs are locked by others, are skipped.
    """
    wanted = {key for keys in missing.values() for key in keys}
    await _make(tx, wanted)
    numbers = await counters(tx, wanted)
    rows = await tx.fetch(SQL["lock_jobs"], sorted(each.job_id for each in missing))
    free = {row["job_id"] for row in rows}
    told = [
        (each.job_id, each.epoch, ",".join(str(numbers[key]) for key in sorted(keys)))
        for each, keys in missing.items()
        if each.job_id in free
    ]
    await tx.execute(SQL["count_in"], *dense(told, 3))


async def counters(tx: Transaction, keys: Collection[LimitKey]) -> dict[LimitKey, int]:
    """Return the ids of the counters of these keys. Keys without a counter are absent."""
    rows = await tx.fetch(SQL["counters"], *dense(sorted(keys), 4))
    return {_key(row): row["counter_id"] for row in rows}


def _key(row: asyncpg.Record) -> LimitKey:
    return LimitKey(row["site"], row["ce"], row["attribute"], row["value"])
