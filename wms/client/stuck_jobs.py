"""Whether the jobs that are left can ever end by themselves: those that start after a failed job cannot."""

from collections.abc import Mapping

import msgspec

from wms.client.query_client import QueryClient
from wms.ids import joined
from wms.job.dependency import WAITS
from wms.job.reasons import Code
from wms.job.state import ENDED, State
from wms.jobdesc import JobDescription
from wms.jobdesc.predecessors import Ranges, predecessors_of
from wms.messages.commands import Selector

LIVE = tuple(state for state in State if state not in ENDED)
FOLLOWED = 20
"""How many jobs are followed to their predecessors. Where more wait, they count as jobs that can go on."""


async def are_stuck(client: QueryClient, selector: Selector) -> bool:
    """Return whether every selected job that has not ended waits, over others or directly, for a job that did not end as required."""
    reasons = await client.reasons(msgspec.structs.replace(selector, states=LIVE))
    held = reasons.get(State.HELD, {})
    if set(reasons) != {State.HELD} or not WAITS.issuperset(held) or held.get(Code.DEPENDENCY, 0) > FOLLOWED:
        return False
    return Code.DEPENDENCY not in held or await _all_stuck(client, selector)


async def _all_stuck(client: QueryClient, selector: Selector) -> bool:
    found = dict[int, Ranges]()
    failed = set[int]()
    todo = [selector]
    chosen: set[int] | None = None
    while todo:
        async for job in client.jobs(msgspec.structs.replace(todo.pop(), states=LIVE)):
            if job.reason == Code.DEPENDENCY_FAILED:
                failed.add(job.job_id)
            elif job.job_id not in found:
                awaited = await _predecessors(client, job.job_id) if job.reason == Code.DEPENDENCY else ()
                found[job.job_id] = awaited
                todo += [Selector(ids=awaited)] if awaited else []
            if len(found) > FOLLOWED:
                return False
        chosen = chosen or set(found)
    return all(_is_stuck(each, found, failed) for each in chosen or ())


async def _predecessors(client: QueryClient, job_id: int) -> Ranges:
    description = msgspec.convert((await client.show(job_id)).description, JobDescription)
    named = predecessors_of(description)
    return joined(named.all) if named else ()


def _is_stuck(job_id: int, awaited: Mapping[int, Ranges], failed: set[int]) -> bool:
    """Return whether a job waits for one of the jobs `failed`. `awaited` has the predecessors of jobs that have not ended."""
    mine = awaited.get(job_id, ())
    return job_id in failed or any(
        _is_stuck(each, awaited, failed)
        for each in (*awaited, *failed)
        if any(low <= each <= high for low, high in mine)
    )
