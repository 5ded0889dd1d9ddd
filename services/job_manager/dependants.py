"""Held jobs that wait for other jobs (predecessors): what users' orders on them do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import msgspec

from services.job_manager.dependencies import reasons_of
from wms.db import block, dependency
from wms.db.database import Transaction
from wms.ids import JobId, beyond, intersection, joined
from wms.job.block import Block, Range
from wms.job.dependency import WAITS, ordered, waits
from wms.job.job import Action, Job, OrderEffect, Steps
from wms.job.reasons import Reason
from wms.job.state import State
from wms.jobdesc.predecessors import Predecessors, Ranges, in_words

Moving = list[tuple[Job, Steps]]
"""Locked jobs, each with the steps that are decided for it."""

CONCERNED: frozenset[Action] = frozenset({"hold", "stop_and_hold", "release"})
"""The orders whose effect on a job with open predecessors differs from that on other jobs."""


class Dependants:
    """The jobs that wait for predecessors, among the jobs of one order, as read from the database."""

    def __init__(self) -> None:
        self.codes: dict[JobId, str] = {}
        """For held jobs with database rows of their own, the reason codes for which they are held, by job id."""
        self._awaits: list[tuple[Ranges, Reason]] = []

    @classmethod
    async def of_rows(cls, tx: Transaction, action: Action, held: Sequence[JobId]) -> Self:
        """Return those of the held jobs, which have rows of their own, that wait for predecessors.

        Return none if `action` is not one of CONCERNED.
        """
        found = cls()
        if action in CONCERNED and held:
            await found._look(tx, joined((each, each) for each in held))
            if found._awaits:
                found.codes = await dependency.hold_codes(tx, held)
        return found

    @classmethod
    async def of_parts(
        cls, tx: Transaction, action: Action, parts: Sequence[block.Part]
    ) -> tuple[Self, Sequence[block.Part]]:
        """Return the jobs with predecessors in parts of blocks, and the parts. The job arrays of the blocks are locked.

        The parts are split, in the database too, so that all jobs of a part have the same predecessors.
        """
        found = cls()
        held = [each for each, _ in parts if each.state is State.HELD]
        if action not in CONCERNED or not held:
            return found, parts
        await found._look(tx, joined((each.first, each.last) for each in held))
        return found, [piece for part in parts for piece in await found._cut(tx, *part)]

    async def _look(self, tx: Transaction, jobs: Ranges) -> None:
        found = await dependency.of_jobs(tx, jobs)
        reasons = await reasons_of(tx, found)
        self._awaits += [(each.jobs, why) for each, why in zip(found, reasons, strict=True)]

    def _pieces(self, whole: Block) -> list[Block]:
        inside = [intersection([(whole.first, whole.last)], jobs) for jobs, _ in self._awaits]
        waiting = joined(each for ranges in inside for each in ranges)
        alone = beyond([(whole.first, whole.last)], waiting)
        return [whole.part(*each) for each in sorted((*alone, *(each for some in inside for each in some)))]

    async def _cut(self, tx: Transaction, whole: Block, ranges: list[tuple[int, int]]) -> list[block.Part]:
        pieces = self._pieces(whole) if whole.state is State.HELD else [whole]
        if len(pieces) > 1:
            await block.replace(tx, [whole], pieces)
        parts = ((each, list(intersection(ranges, [(each.first, each.last)]))) for each in pieces)
        return [(each, some) for each, some in parts if some]

    def decide(self, found: Job, action: Action, text: str, code: str) -> OrderEffect | None:
        """Decide what an order does to one job. Return None if the ordinary rules apply, because no predecessor is open or matters.

        `text` is the user's reason, `code` the code for which the job is held.
        """
        awaits = next(
            (why for jobs, why in self._awaits if intersection([(found.job_id, found.job_id)], jobs)), None
        )
        return None if awaits is None else ordered(found, action, text, code, awaits)

    async def let_go(
        self, tx: Transaction, action: Action, released: Iterable[tuple[Iterable[Range], str]]
    ) -> None:
        """After a release, delete the dependencies of jobs that were held for their predecessors.

        `released` are ranges of job ids, with the code for which they were held. Other actions change nothing.
        """
        jobs = joined(each for ranges, code in released if code in WAITS for each in ranges)
        if action == "release" and jobs and self._awaits:
            await dependency.let_go(tx, jobs)


async def change(tx: Transaction, waiting: Mapping[JobId, Predecessors], moving: Moving) -> Moving:
    """Replace the predecessors of held jobs in the database. `waiting` are the new ones, which may be empty.

    Return the steps in `moving`, with a new reason for jobs that are held for their predecessors.
    """
    await dependency.let_go(tx, joined((each, each) for each in waiting))
    by_predecessors: dict[Predecessors, list[Range]] = {}
    for job_id, predecessors in waiting.items():
        by_predecessors.setdefault(predecessors, []).append((job_id, job_id))
    # A job without predecessors is released like one whose predecessors have ended.
    await dependency.insert(tx, ((joined(jobs), each) for each, jobs in by_predecessors.items()))
    return [(found, _told(steps, waiting[found.job_id])) for found, steps in moving]


def _told(steps: Steps, predecessors: Predecessors) -> Steps:
    if steps[-1].reason.code not in WAITS:
        return steps
    reason = waits(in_words(predecessors.all) if predecessors.all else "no other job")
    return (*steps[:-1], msgspec.structs.replace(steps[-1], reason=reason))
