"""Counts of selected jobs by state and reason, in pieces: the time of one piece is bounded, however many jobs there are.

A piece counts jobs from the newest on, and comes with the id from which the next piece goes on. One piece after another counts each job
once, in the state that it has then.
"""

import time
from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

import msgspec

from wms.auth.policy import Scope
from wms.db import block
from wms.db.database import Transaction
from wms.db.job_search import HIGHEST, like, one_index, owner
from wms.db.sql import load
from wms.ids import JobId, joined
from wms.messages.commands import Selector

SQL = load(__file__)

STEP: Final = 20_000
"""How many job rows one statement counts, which takes some 10 ms."""
COUNT_SECONDS: Final = 0.25
"""For how many seconds job rows are counted for one piece at most."""


class CountPiece(msgspec.Struct, frozen=True):
    """Numbers of selected jobs by state and reason code. If `counted_from` is not None, the jobs with lower ids are for further pieces."""

    jobs: Mapping[tuple[str, str], int]
    rows: int
    """How many job rows were read, selected or not."""
    counted_from: JobId | None = None


async def count(
    tx: Transaction,
    scope: Scope,
    selector: Selector,
    below: int | None = None,
    *,
    seconds: float = COUNT_SECONDS,
    step: int = STEP,
) -> CountPiece:
    """Return the numbers of the selected jobs that the user with this scope may see, as far as one piece goes.

    `below` is where the piece before ended. None begins a count: with the jobs in blocks, which are all in the first piece, and the newest
    job rows. A selector without any criterion selects no jobs. Rows are counted for `seconds` seconds, but `step` of them at least.
    """
    if selector == Selector():
        return CountPiece({}, 0)
    deadline = time.monotonic() + seconds
    # Blocks first: jobs that become rows between the statements are counted twice, not missed.
    jobs = Counter[tuple[str, str]]()
    if below is None:
        jobs += await block.count(tx, block.wanted(scope, selector))
    conditions = _conditions(scope, selector)
    lowest, read = HIGHEST if below is None else below, 0
    while True:
        rows = await tx.fetch(SQL["next_rows"], step, lowest, *conditions)
        for row in filter(itemgetter("selected"), rows):
            jobs[row["state"], row["reason"]] += row["jobs"]
        found = sum(row["jobs"] for row in rows)
        read += found
        if found < step:
            return CountPiece(jobs, read)
        lowest = min(row["lowest"] for row in rows)
        if time.monotonic() >= deadline:
            return CountPiece(jobs, read, JobId(lowest))


def _conditions(scope: Scope, selector: Selector) -> tuple[Any, ...]:
    index, ranges = one_index(scope, selector), joined(selector.ids)[::-1]
    return (
        *("ids" if ranges else index.name, owner(scope, selector), index.rare_state),
        *([low for low, _ in ranges], [high for _, high in ranges]),
        *(scope.owner, scope.group, scope.vo, selector.owner, selector.site, like(selector.name)),
        *(selector.job_group, selector.changed_since, list(selector.states) or None),
    )
