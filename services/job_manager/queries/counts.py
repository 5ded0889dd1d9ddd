"""Answers with the number of selected jobs by state and reason."""

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from services.job_manager.queries.counting_time import CountingTime
from services.job_manager.queries.kept_counts import KeptCounts
from wms.auth.policy import Scope, scope
from wms.auth.principal import Principal
from wms.db import job_count, selection
from wms.db.database import Transaction
from wms.db.job_count import COUNT_SECONDS, STEP, CountPiece
from wms.errors import Rejected
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.commands import Selector

KEPT_PIECES = 1_000
TOO_MANY_REMEDY = "select fewer, or count in pieces, as newer clients do: `in_pieces`, and `below` with what was `counted_from`"


class _Piece(NamedTuple):
    """What a piece counts: the jobs of a selector that a scope may see, below an id (None: all)."""

    sees: Scope
    selector: Selector
    below: int | None


class Counting:
    """Counts jobs in pieces, each within a bounded time. It keeps pieces of many rows for a while, and shares its time among users."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without counts. `clock` returns monotonic seconds."""
        self._clock = clock
        self._kept: KeptCounts[_Piece, CountPiece] = KeptCounts(
            KEPT_PIECES, clock, is_kept=lambda piece: piece.rows >= STEP
        )
        self._time = CountingTime(COUNT_SECONDS, clock)

    async def count_jobs(
        self, tx: Transaction, principal: Principal, query: asked.CountJobs
    ) -> replies.JobCounts:
        """Return the numbers of the selected jobs, or those of the newest ones with the id from which the next query goes on.

        Raise Rejected if these are not all and the asker cannot go on (not `in_pieces`), as programs of before.
        Numbers for which 20,000 job rows or more were read may be two seconds old; others are as of now.
        """
        selector = await selection.of_submission(tx, principal.owner, query.selector)
        wanted = _Piece(scope(principal, "see"), selector, query.below)
        counted = await self._kept.read(wanted, lambda _: self._count(tx, principal.owner, wanted))
        if counted.counted_from is not None and not query.in_pieces:
            raise Rejected("TOO_MANY_JOBS", "so many jobs are not counted at once", TOO_MANY_REMEDY)
        counts, reasons = _told(counted)
        return replies.JobCounts(
            query_id=query.query_id,
            client=query.client,
            counts=counts,
            reasons=reasons if query.by_reason else {},
            counted_from=counted.counted_from,
        )

    async def _count(self, tx: Transaction, owner: str, wanted: _Piece) -> CountPiece:
        began = self._clock()
        try:
            return await job_count.count(tx, *wanted, seconds=self._time.left(owner))
        finally:
            self._time.spend(owner, self._clock() - began)


def _told(counted: CountPiece) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return the numbers of jobs by state, and by state and then by reason."""
    counts, reasons = Counter[str](), dict[str, dict[str, int]]()
    for (state, reason), jobs in counted.jobs.items():
        counts[state] += jobs
        reasons.setdefault(state, {})[reason] = jobs
    return dict(counts), reasons
