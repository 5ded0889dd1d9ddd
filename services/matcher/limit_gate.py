"""Claims jobs under limits: what has room is claimed and counted in one transaction, the rest goes back to the index.

A key without room is closed in the index, so that nothing is drawn in vain, until whoever makes room says so, or until
the next token of its bucket, or the next ad of its computing element. Jobs that no limit names, and all jobs where there are
none, pass without a statement: the claim itself finds whether an element began to state a limit that this matcher does not
know, and then gives nothing (ADR 29).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, TypeAlias

from wms.db import limit
from wms.db.database import Transaction
from wms.db.job import Claim, Claimed
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
"""For how long a key is passed over that another matcher has its hands on, or whose leases are not all counted yet."""

Asked: TypeAlias = tuple[Claim, Pick]
"""A job that was drawn, and for whom."""

Claims: TypeAlias = Callable[[Transaction, Sequence[Claim], int], Awaitable[list[Claimed] | None]]
"""What gives jobs to pilots; it leaves out those that wait no more. None: elements state limits since that generation."""

UNKNOWN = AdvertisedLimits(-1, frozenset())


class _Closed(NamedTuple):
    until: float
    """Infinite: until somebody makes room."""
    bound: StrictestLimit


class LimitGate:
    """The limits that one matcher keeps, and what is closed for them; `clock` tells monotonic seconds."""

    def __init__(self, index: QueueIndex, clock: Callable[[], float]) -> None:
        self._index = index
        self._clock = clock
        self._limits = LimitSet()
        self._uncounted = LimitSet()
        self._closed: dict[LimitKey, _Closed] = {}
        self._advertising = UNKNOWN
        """The elements whose ads state a limit, or did when this was last read."""

    # --- what is closed ---------------------------------------------------------------------------

    def keep(self, limits: LimitSet, uncounted: LimitSet) -> None:
        """Keep these limits from now on; nothing passes those of which not all leases are counted yet."""
        self._limits, self._uncounted = limits, uncounted
        self.open(list(self._closed))

    def waiting_for_room(self) -> list[LimitKey]:
        """Return what is closed until somebody makes room."""
        return [key for key, each in self._closed.items() if each.until == inf]

    def open(self, keys: Iterable[LimitKey]) -> None:
        """There is room again under these keys."""
        self._tell([key for key in keys if self._closed.pop(key, None) is not None])

    def open_due(self) -> None:
        """Open what was closed for a time that is over."""
        if self._closed:
            now = self._clock()
            self.open([key for key, each in self._closed.items() if each.until <= now])

    def open_roomy(self, counts: Counts) -> None:
        """Open what has room by these counts, should the word of it have been lost."""
        closed = [(key, self._closed[key].bound) for key in self.waiting_for_room()]
        self.open([key for key, bound in closed if room(bound, counts.get(key, Count())) > 0])

    def _close(self, closed: Mapping[LimitKey, _Closed]) -> None:
        self._closed.update(closed)
        self._tell(closed)

    def _tell(self, keys: Iterable[LimitKey]) -> None:
        """Have the index keep back what is closed now at the places of these keys."""
        for (site, ce), pairs in pairs_by_place(keys, self._closed).items():
            self._index.close(site, pairs, ce=ce)

    # --- what passes ------------------------------------------------------------------------------

    async def claim(
        self, tx: Transaction, asked: Sequence[Asked], claim: Claims, *, first: bool
    ) -> list[Claimed]:
        """Have what the limits let pass claimed; put the rest back into the index, where it is closed by then.

        `first` in its transaction: only then may it wait for a counter that another has locked.
        """
        claimed = await self._claim(tx, asked, claim, wait=first)
        if claimed is None:
            # No element begins to state a limit before this transaction ends: this time it is known.
            self._advertising = await limit.advertising(tx)
            claimed = await self._claim(tx, asked, claim, wait=False)
            assert claimed is not None
        return claimed

    async def _claim(
        self, tx: Transaction, asked: Sequence[Asked], claim: Claims, *, wait: bool
    ) -> list[Claimed] | None:
        """Claim under the limits that are known; None, and all is as it was, if there are others."""
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

    def _concerning(self, claim: Claim, pick: Pick) -> Bounds:
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
        """Count what was claimed, and close what has no room left."""
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
        # Who gives back finds it said that it is waited for, unless this transaction fails.
        tx.on_failure(partial(self.open, awaited))
        await limit.settle(tx, locked, taken, left, awaited, claimed)
        self._close(full)


def _parted(
    asked: Sequence[Asked], concerned: Mapping[JobId, Bounds], locked: Mapping[LimitKey, LockedCounter]
) -> tuple[list[Claim], list[Pick]]:
    """Return what the limits let pass, and what not."""
    counts = {key: each.level for key, each in locked.items()}
    verdicts = admitted([concerned[pick.job_id] for _, pick in asked], counts)
    judged = list(zip(asked, verdicts, strict=True))
    return [claim for (claim, _), may in judged if may], [pick for (_, pick), may in judged if not may]


def _closed(bound: StrictestLimit, count: Count, now: float) -> _Closed:
    if count.exhausted or (bound.running is not None and count.running >= bound.running):
        return _Closed(inf, bound)
    return _Closed(now + seconds_until_token(bound, count), bound)
