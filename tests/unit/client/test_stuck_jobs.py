"""Which waits never end by themselves, asked of a system with chains of jobs."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from wms.client.stuck_jobs import are_stuck
from wms.messages.commands import Selector
from wms.messages.replies import JobLine

FAILED, WAITS = "DEPENDENCY_FAILED", "DEPENDENCY"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Jobs:
    """Jobs by id: each with its state, its reason, and the ids after which it starts."""

    def __init__(self, jobs: dict[int, tuple[str, str, str]]) -> None:
        self._jobs = jobs

    def _chosen(self, selector: Selector) -> list[int]:
        return [
            job_id
            for job_id, (state, _, _) in self._jobs.items()
            if state in selector.states and any(low <= job_id <= high for low, high in selector.ids)
        ]

    async def reasons(self, selector: Selector) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for state, reason, _ in (self._jobs[each] for each in self._chosen(selector)):
            found.setdefault(state, Counter())[reason] += 1
        return found

    async def jobs(self, selector: Selector) -> AsyncIterator[JobLine]:
        who: dict[str, Any] = {"name": "j", "owner": "ann", "owner_group": "g", "vo": "v"}
        for each in self._chosen(selector):
            state, reason, _ = self._jobs[each]
            yield JobLine(
                site=None,
                job_id=each,
                state=state,
                reason=reason,
                attempts=0,
                submitted_at=NOW,
                changed_at=NOW,
                **who,
            )

    async def show(self, job_id: int) -> Any:
        return SimpleNamespace(description={"executable": "true", "after": [self._jobs[job_id][2]]})


FIRST = {1: ("Failed", "EXIT_CODE", "")}
CHAIN = {**FIRST, 2: ("Held", FAILED, "1"), 3: ("Held", WAITS, "2"), 4: ("Held", WAITS, "3")}


@pytest.mark.parametrize(
    ("jobs", "chosen", "stuck"),
    [
        (CHAIN, (1, 4), True),
        (CHAIN, (4, 4), True),
        (CHAIN, (1, 2), True),
        ({**CHAIN, 5: ("Running", "", "")}, (1, 5), False),
        ({**CHAIN, 5: ("Running", "", ""), 6: ("Held", WAITS, "5")}, (6, 6), False),
        ({**CHAIN, 5: ("Running", "", ""), 6: ("Held", WAITS, "5")}, (2, 4), True),
        ({**CHAIN, 6: ("Held", WAITS, "5")}, (2, 6), False),
        ({**CHAIN, 5: ("Held", "HELD_BY_USER", "")}, (1, 5), False),
        ({**CHAIN, 5: ("Held", "HELD_BY_USER", ""), 6: ("Held", WAITS, "5")}, (6, 6), False),
        ({**CHAIN, **dict.fromkeys(range(10, 40), ("Held", WAITS, "2"))}, (1, 40), False),
    ],
    ids=[
        "a chain", "its end", "its begin", "one runs", "another one runs", "another one runs beside", "its ended one is unknown",
        "one is held", "a held one before it", "too many to follow",
    ],
)  # fmt: skip
async def test_a_wait_ends_only_where_all_wait_for_a_failed_job(
    jobs: dict[int, tuple[str, str, str]], chosen: tuple[int, int], *, stuck: bool
) -> None:
    assert await are_stuck(Jobs(jobs), Selector(ids=(chosen,))) is stuck  # type: ignore[arg-type] # a stand-in
