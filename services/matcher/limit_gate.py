"""Claims jobs under limits: those that the limits allow are claimed and counted in one transaction, the others return to the index.

A limit counts jobs by a key: a place and a value, such as an owner at a site. A key has room if its limit lets a further job start. A key without
room is closed in the queue index, so that none of its jobs is drawn in vain. It opens when another process reports room, with the next token of a
rate limit, or with the element's next ad. Jobs without limits need no extra statement. An element may begin to state a limit that this matcher has
not read yet. The claim itself detects that, and then claims nothing (ADR 29).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, TypeAlias

from wms.db import limit
from wms.db.claim import ClaimedJob, JobClaim
from wms.db.database import Transaction
from wms.db.limit import AdvertisedLimits, LockedCounter
from wms.ids import CeId, JobId
from wms.matching.limits import (
    Bounds,
    Count,
    Counts,
    LimitKey,
    LimitSet,
    StrictestLimit,
    admitted,
    after,
    all_jobs,
    pairs_by_place,
    room,
    seconds_until_token,
)
from wms.queue_index.index import Pick, QueueIndex

BUSY_SECONDS = 0.05
"""Seconds for which a key is closed if another matcher has locked it, or if its running jobs are not all counted yet."""

Asked: TypeAlias = tuple[JobClaim, Pick]
"""A drawn job: the claim to make for it, and the pick with which it can be put back into the index."""

Claims: TypeAlias = Callable[[Transaction, Sequence[JobClaim], int], Awaitable[list[ClaimedJob] | None]]
"""A function that claims jobs in a transaction, and returns the claimed ones: those that still waited.

Its last argument is the generation of the known limits in ads. If elements began to state limits since then, it claims nothing and returns None.
"""

UNKNOWN = AdvertisedLimits(-1, frozenset())


class _Closed(NamedTuple):
    until: float
    """The monotonic seconds until which the key is closed; infinite if it is closed until another process reports room."""
    bound: StrictestLimit


class LimitGate:
    """Applies limits to the jobs that one matcher claims, and closes keys without room in its index.

    `clock` returns monotonic seconds.
    """

    def __init__(self, index: QueueIndex, clock: Callable[[], float]) -> None:
        self._index = index
        self._clock = clock
        self._limits = LimitSet()
        self._uncounted = LimitSet()
        self._closed: dict[LimitKey, _Closed] = {}
        self._advertising = UNKNOWN
        """The computing elements whose ads state a limit, as last read."""

    # --- what is closed ---------------------------------------------------------------------------

    def keep(self, limits: LimitSet, uncounted: LimitSet) -> None:
        """Replace the limits. Keys of the limits in `uncounted` stay closed, because their running jobs are not all counted yet."""
        self._limits, self._uncounted = limits, uncounted
        self.open(list(self._closed))

    def waiting_for_room(self) -> list[LimitKey]:
        """Return the keys that stay closed until another process reports room."""
        return [key for key, each in self._closed.items() if each.until == inf]

    def open(self, keys: Iterable[LimitKey]) -> None:
        """Open those of the keys that are closed: they have room again, and the index may draw their jobs."""
        self._tell([key for key in keys if self._closed.pop(key, None) is not None])

    def open_due(self) -> None:
        """Open the keys whose time of closing has passed."""
        if self._closed:
            now = self._clock()
            self.open([key for key, each in self._closed.items() if each.until <= now])

    def open_roomy(self, counts: Counts) -> None:
        """Open the keys that have room by `counts`, read from the database, in case a report of room was lost."""
        closed = [(key, self._closed[key].bound) for key in self.waiting_for_room()]
        self.open([key for key, bound in closed if room(bound, counts.get(key, Count())) > 0])

    def _close(self, closed: Mapping[LimitKey, _Closed]) -> None:
        self._closed.update(closed)
        self._tell(closed)

    def _tell(self, keys: Iterable[LimitKey]) -> None:
        """Update in the index which keys are closed, at all places of these keys."""
        for (site, ce), pairs in pairs_by_place(keys, self._closed).items():
            self._index.close(site, pairs, ce=ce)

    # --- what passes ------------------------------------------------------------------------------

    async def claim(
        self, tx: Transaction, asked: Sequence[Asked], claim: Claims, *, first: bool
    ) -> list[ClaimedJob]:
        """Claim the drawn jobs `asked` that limits allow, by the function `claim`, and return them. The others go back into the index.

        Claims and counts are written in the given transaction. `first` says that the transaction has locked nothing yet. Only then may it wait for a
        counter that another transaction has locked.
        """
        claimed = await self._claim(tx, asked, claim, wait=first)
        if claimed is None:
            # No element can begin to state a limit before this transaction ends.
            self._advertising = await limit.advertising(tx)
            claimed = await self._claim(tx, asked, claim, wait=False)
            assert claimed is not None
        return claimed

    async def _claim(
        self, tx: Transaction, asked: Sequence[Asked], claim: Claims, *, wait: bool
    ) -> list[ClaimedJob] | None:
        """Claim jobs under the known limits, and return them. Return None, and change nothing, if elements began to state other limits.

        `wait` says whether to wait for counters that other transactions have locked. Otherwise jobs under these counters return to the index.
        """
        concerned = (
            {pick.job_id: self._concerning(claim, pick) for claim, pick in asked}
            if self._limits or self._advertising.places
            else {}
        )
        bounds = {key: bound for each in concerned.values() for key, bound in each.items()}
        generation = self._advertising.generation
        if not bounds:
            return await claim(tx, [each for each, _ in asked], generation)
        locked = await limit.lock(tx, bounds.keys() - self._not_counted(asked), wait=wait)
        passing, others = _parted(asked, concerned, locked)
        claimed = await claim(tx, passing, generation) if passing else []
        if claimed is None:
            return None
        self._index.restore(others)
        busy = _Closed(self._clock() + BUSY_SECONDS, StrictestLimit())
        self._close(dict.fromkeys(bounds.keys() - locked.keys(), busy))
        held = {each.job_id: concerned[each.job_id] for each in claimed if concerned[each.job_id]}
        await self._settle(tx, locked, bounds, held)
        return claimed

    def _concerning(self, claim: JobClaim, pick: Pick) -> Bounds:
        bounds = self._limits.concerning(self._index.requirements(pick.tq_id), claim.site, claim.ce)
        if CeId(claim.site, claim.ce) not in self._advertising.places:
            return bounds
        return {all_jobs(claim.site, claim.ce): StrictestLimit(), **bounds}

    def _not_counted(self, asked: Iterable[Asked]) -> set[LimitKey]:
        if not self._uncounted:
            return set()
        wanted = ((self._index.requirements(pick.tq_id), claim.site, claim.ce) for claim, pick in asked)
        return {key for each in wanted for key in self._uncounted.concerning(*each)}

    async def _settle(
        self,
        tx: Transaction,
        locked: Mapping[LimitKey, LockedCounter],
        bounds: Bounds,
        claimed: Mapping[JobId, Bounds],
    ) -> None:
        """Count claimed jobs under their keys, and close keys without room."""
        taken = dict.fromkeys(locked, 0)
        for key in (key for each in claimed.values() for key in each):
            taken[key] += 1
        now = self._clock()
        left = {key: after(bounds[key], each.level, taken[key]) for key, each in locked.items()}
        full = {
            key: _closed(bounds[key], count, now)
            for key, count in left.items()
            if not room(bounds[key], count)
        }
        awaited = {key for key, each in full.items() if each.until == inf}
        # Whoever gives room back sees that it is awaited, unless this transaction fails.
        tx.on_failure(partial(self.open, awaited))
        await limit.settle(tx, locked, taken, left, awaited, claimed)
        self._close(full)


def _parted(
    asked: Sequence[Asked], concerned: Mapping[JobId, Bounds], locked: Mapping[LimitKey, LockedCounter]
) -> tuple[list[JobClaim], list[Pick]]:
    """Divide drawn jobs. Return the claims of those that all their limits allow, and the picks of the others."""
    counts = {key: each.level for key, each in locked.items()}
    verdicts = admitted([concerned[pick.job_id] for _, pick in asked], counts)
    judged = list(zip(asked, verdicts, strict=True))
    return [claim for (claim, _), may in judged if may], [pick for (_, pick), may in judged if not may]


def _closed(bound: StrictestLimit, count: Count, now: float) -> _Closed:
    if count.exhausted or (bound.running is not None and count.running >= bound.running):
        return _Closed(inf, bound)
    return _Closed(now + seconds_until_token(bound, count), bound)
