"""Limits in the database: from the configuration file, set at run time, and stated by ads; and the counters of jobs under them.

Each lease holds the ids of the counters that count it. A counter's row is locked before it changes, always in the order
of ids. So no limit is exceeded, and no deadlock arises.
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
from wms.messages import changes
from wms.messages import limits as limited

SQL = load(__file__)

LISTED = 10_000
"""The most counters that `all_counts` returns."""


class SourcedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit with its source, its author, and whether it was lifted at run time."""

    limit: LimitRule
    lifted: bool
    source: Literal["set", "file"]
    said_by: str
    said_at: datetime


class LockedCounter(NamedTuple):
    """A counter that is locked by the transaction."""

    counter_id: int
    level: Count
    at: datetime
    """The database's time when the lock was obtained."""


class Allowed(NamedTuple):
    """The number of jobs that an element's ad admits until its next ad; None if the ad states no limit."""

    allowed: int | None
    lifetime_seconds: float
    observed_at: datetime | None = None
    """The time at which the source counted the element's jobs; None: just now. Jobs sent later are not in its count."""
    current: int = 0
    """The number of jobs that the source counted."""
    sees_jobs: bool = True
    """Whether the source counts the jobs of pilots; otherwise it counts the pilots."""


class AdvertisedLimits(NamedTuple):
    """The elements whose ads state a limit, and the generation of this set."""

    generation: int
    """A number that rises when an element begins to state a limit."""
    places: AbstractSet[CeId]


class Leased(NamedTuple):
    """The fields of a lease and its job that limits depend on."""

    job_id: JobId
    epoch: Epoch
    site: str
    ce: str
    tq_id: TaskQueueId
    counted: frozenset[int]
    """The ids of the counters that count the lease."""


async def said(tx: Transaction) -> list[SourcedLimit]:
    """Return the limits in force, and the limits of the file that were lifted."""
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
    """Return the rules of the limits that are not lifted."""
    return [each.limit for each in said if not each.lifted]


async def set_limit(tx: Transaction, limit: LimitRule, said_by: str) -> None:
    """Set a limit, which overrides the one of the file, and notify the matchers."""
    await _say(tx, limit.kind, limit.key, limit.most, limit.per_second, said_by)


async def lift(tx: Transaction, kind: Kind, key: LimitKey, said_by: str) -> None:
    """Lift a limit, even one of the file, and notify the matchers."""
    await _say(tx, kind, key, None, None, said_by)


async def _say(  # noqa: PLR0917 - the columns of a rule
    tx: Transaction, kind: Kind, key: LimitKey, most: int | None, per_second: float | None, said_by: str
) -> None:
    await tx.execute(SQL["set"], kind, *key, most, per_second, said_by)
    tell_changed(tx)


async def reset(tx: Transaction, kind: Kind, key: LimitKey) -> bool:
    """Delete what was set at run time, so that the file's limit is in force; return whether anything was set."""
    was_set = bool(await tx.execute(SQL["reset"], kind, *key))
    tell_changed(tx)
    return was_set


async def write_file(tx: Transaction, limits: Iterable[LimitRule]) -> None:
    """Replace the stored limits of the file by these, and notify the matchers if anything changed."""
    rows = [(each.kind, *each.key, each.most, each.per_second) for each in limits]
    columns = dense(rows, 7)
    dropped = await tx.execute(SQL["drop_file"], *columns)
    written = await tx.execute(SQL["write_file"], *columns)
    if dropped or written:
        tell_changed(tx)


async def lock(tx: Transaction, keys: AbstractSet[LimitKey], *, wait: bool) -> dict[LimitKey, LockedCounter]:
    """Lock the counters of these keys and return them with their counts. If `wait` is true, missing counters are made.

    A caller that already holds counters must not wait for more. Without `wait` counters locked by others are left out.
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
    """Store claims in the locked counters, and in each job's lease the ids of its counters.

    The counters of `awaited` will notify the matchers as soon as they have room.
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
    """Reduce the counters of ended leases, and notify the matchers of counters that they await and that have room now."""
    ended = Counter(counted)
    if not ended:
        return
    rows = await tx.fetch(SQL["give_back"], list(ended), list(ended.values()))
    if rows:
        tx.send(changes.TOPIC, "", _opened(_key(row) for row in rows))


def _opened(keys: Iterable[LimitKey]) -> changes.Opened:
    return changes.Opened(keys=tuple(limited.Key(*key) for key in keys))


async def counts(tx: Transaction, keys: Collection[LimitKey]) -> dict[LimitKey, Count]:
    """Return the counts of these keys; keys without a counter are absent."""
    return {_key(row): _count(row) for row in await tx.fetch(SQL["counts"], *dense(sorted(keys), 4))}


async def all_counts(tx: Transaction) -> dict[LimitKey, Count]:
    """Return the counts of all keys that count anything, at most `LISTED` keys."""
    return {_key(row): _count(row) for row in await tx.fetch(SQL["all_counts"], LISTED)}


def _count(row: asyncpg.Record) -> Count:
    return Count(
        row["running"], row["tokens"], row["idle_seconds"], row["allowed"], row["matched"], row["sent"]
    )


async def advertise(tx: Transaction, ads: Mapping[CeId, Allowed]) -> None:
    """Store the limits of new ads and count from zero again; notify the matchers of counters that they await.

    The transaction must hold no counter before the call.
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
        tx.send(changes.TOPIC, "", _opened(opened))


async def end_ads(tx: Transaction, places: Collection[CeId]) -> None:
    """Close elements whose ads ended. An element that states a limit then admits no job until its next ad."""
    if places:
        await tx.execute(SQL["end_ads"], *dense(sorted(places), 2))


async def advertising(tx: Transaction) -> AdvertisedLimits:
    """Return the elements whose ads state a limit, and the generation of this set."""
    # The generation is read first: later elements are then seen twice, and not missed.
    generation = await tx.fetchval(SQL["generation"])
    places = {CeId(row["site"], row["ce"]) for row in await tx.fetch(SQL["advertising"])}
    return AdvertisedLimits(generation, frozenset(places))


async def pilots_left(tx: Transaction) -> dict[CeId, int]:
    """Return the number of further pilots that each element admits. Only elements whose ads state a limit are included."""
    return {CeId(row["site"], row["ce"]): row["left"] for row in await tx.fetch(SQL["pilots_left"])}


async def count_pilots(tx: Transaction, wanted: Mapping[CeId, int]) -> dict[CeId, int]:
    """Count pilots that are about to be sent; return the number that each element admits.

    Elements whose ads state no limit are absent.
    """
    columns = dense([(*place, wanted[place]) for place in sorted(wanted)], 3)
    await tx.execute(SQL["hold"])
    return {
        CeId(row["site"], row["ce"]): row["granted"] for row in await tx.fetch(SQL["count_pilots"], *columns)
    }


async def leased(tx: Transaction, after: int, limit: int) -> list[Leased]:
    """Return up to `limit` leases of jobs with ids above `after`, in the order of the job ids."""
    rows = await tx.fetch(SQL["leased"], after, limit)
    return [Leased(**{**row, "counted": frozenset(row["counted"])}) for row in rows]


async def count_in(tx: Transaction, missing: Mapping[Leased, Collection[LimitKey]]) -> None:
    """Add leases to the counters of further keys. Leases that ended, or whose jobs are locked by others, are skipped."""
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
    """Return the ids of the counters of these keys; keys without a counter are absent."""
    rows = await tx.fetch(SQL["counters"], *dense(sorted(keys), 4))
    return {_key(row): row["counter_id"] for row in rows}


def _key(row: asyncpg.Record) -> LimitKey:
    return LimitKey(row["site"], row["ce"], row["attribute"], row["value"])
