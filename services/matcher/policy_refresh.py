"""Reads shares, limits and usage from Postgres, after changes and every few seconds, and applies them to the matcher's index."""

from collections.abc import Callable, Mapping, Sequence

import structlog

from services.matcher.limit_gate import LimitGate
from wms.db import limit, share, task_queue, usage
from wms.db.database import Database, Transaction
from wms.db.limit import LimitedLease
from wms.matching.limits import LimitKey, LimitRule, LimitSet
from wms.matching.shares import GroupShare, VoGroup
from wms.matching.usage import factors
from wms.queue_index.index import QueueIndex

log = structlog.get_logger()

PAGE = 1_000
COUNT_AGAIN_SECONDS = 30.0
"""Seconds within which all matchers learn of a new limit. Leases from matchers that did not know the limit yet are counted afterwards."""
PASSES = 100


class PolicyRefresh:
    """Applies the shares, limits and past usage that are stored in the database; `clock` returns monotonic seconds.

    Past usage reduces the shares of owners. Its weight halves every `half_life_hours`; with 0 it does not count.
    """

    def __init__(
        self,
        db: Database,
        index: QueueIndex,
        gate: LimitGate,
        clock: Callable[[], float],
        half_life_hours: float = 0.0,
    ) -> None:
        self._db = db
        self._index = index
        self._gate = gate
        self._clock = clock
        self._shares: dict[VoGroup, GroupShare] = {}
        self._limits: list[LimitRule] = []
        self._count_until = 0.0
        self._half_life_seconds = half_life_hours * 3_600.0

    async def declare(
        self, shares: Mapping[str, Mapping[str, GroupShare]], limits: Sequence[LimitRule] = ()
    ) -> None:
        """Store the shares and limits of this matcher's configuration file in place of those stored from a file before; then apply them.

        If matchers have different files, those of the matcher that started last hold.
        """
        said = {(vo, group): each for vo, groups in shares.items() for group, each in groups.items()}
        async with self._db.transaction() as tx:
            await share.replace_configured(tx, said)
            await limit.replace_configured(tx, limits)
        await self.refresh()

    def is_shared(self, group: VoGroup) -> bool:
        """Return whether the members of a group (VO and group name) share their jobs."""
        held = self._shares.get(group)
        return held is not None and held.job_sharing

    async def refresh(self) -> None:
        """Read shares, limits and usage from the database, and apply what has changed to the index and the limit gate."""
        async with self._db.transaction() as tx:
            shares = {group: each.share for group, each in (await share.sourced(tx)).items()}
            limits = limit.holding(await limit.sourced(tx))
        if shares != self._shares:
            self._shares = shares
            self._index.set_shares(shares)
            log.info("shares changed", groups=len(shares))
        if limits != self._limits:
            await self._keep(limits)
        elif self._clock() < self._count_until:
            await self._count_in()
        await self._look_for_room()
        if self._half_life_seconds:
            await self._count_usage()

    async def _keep(self, limits: list[LimitRule]) -> None:
        """Use new limits from now on. Their keys stay closed until the leases given out before them are counted."""
        before = {each.key for each in self._limits if each.kind == "running"}
        new = [each for each in limits if each.kind == "running" and each.key not in before]
        self._limits = limits
        if new:
            self._count_until = self._clock() + COUNT_AGAIN_SECONDS
            self._gate.keep(LimitSet(limits), LimitSet(new))
            for _ in range(PASSES):
                if not await self._count_in():
                    break
        self._gate.keep(LimitSet(limits), LimitSet())
        log.info("limits changed", limits=len(limits))

    async def _look_for_room(self) -> None:
        if closed := self._gate.waiting_for_room():
            async with self._db.transaction() as tx:
                counts = await limit.counts(tx, closed)
            self._gate.open_roomy(counts)

    async def _count_usage(self) -> None:
        """Weight the shares of owners by their recent usage."""
        async with self._db.transaction() as tx:
            used = await usage.read(tx, self._half_life_seconds)
        self._index.count_usage(factors(self._index.waiting_owners(), self._shares, used))

    async def _count_in(self) -> int:
        """Count the leases that were given out before their limits were set. Return how many leases had to be counted."""
        running = LimitSet(each for each in self._limits if each.kind == "running")
        last, found, page = 0, 0, PAGE
        while running and page == PAGE:
            async with self._db.transaction() as tx:
                leases = await limit.leased(tx, last, PAGE)
                missing = await _missing(tx, running, leases)
                if missing:
                    await limit.count_in(tx, missing)
            page, found = len(leases), found + len(missing)
            last = leases[-1].job_id if leases else last
        return found


async def _missing(
    tx: Transaction, running: LimitSet, leases: Sequence[LimitedLease]
) -> dict[LimitedLease, list[LimitKey]]:
    """Return the leases that some limits should count but do not, each with the keys of these limits."""
    required = await task_queue.read(tx, (each.tq_id for each in leases))
    keys = {each: running.concerning(required[each.tq_id], each.site, each.ce).keys() for each in leases}
    numbers = await limit.counters(tx, {key for several in keys.values() for key in several})
    missing = {
        lease: [key for key in several if numbers.get(key) not in lease.counted]
        for lease, several in keys.items()
    }
    return {lease: several for lease, several in missing.items() if several}
