"""What users are told of why their jobs wait."""

import itertools
from datetime import UTC, datetime
from typing import Any

import msgspec

from tests.services.world import World, user
from wms.db import ad
from wms.ids import CommandId, JobId
from wms.messages import replies
from wms.messages.ads import Advertise
from wms.messages.commands import Selector, Submit
from wms.messages.queries import ListJobs, WhyJob
from wms.site import ComputingElement

_NUMBERS = itertools.count(1)


async def advertise(world: World, ce: str = "ce", *, site: str = "A", **offered: Any) -> None:
    given: dict[str, Any] = {"setup": "default", "slots": 4, "max_cpu_time": 10**6, "memory_mb": 4_000}
    element = ComputingElement(site=site, ce=ce, **(given | offered))
    async with world.db.transaction() as tx:
        await ad.store(tx, [Advertise(element=element, advertised_at=datetime.now(UTC))])


async def expire(world: World, ce: str = "ce") -> None:
    await world.sql("update ad set expires_at = now() - interval '1 s' where ce = $1", ce)


async def run_pilot(world: World, *, slots: int = 4, busy: int = 0, who: Any = None) -> None:
    who = await world.add_pilot(who, slots)
    await world.sql("update pilot set state = 'Running', busy = $2 where pilot_id = $1", who.pilot_id, busy)


async def why(world: World, job_id: JobId, who: Any = None) -> replies.JobWhy:
    reply = await world.ask(who or user(), WhyJob(query_id="q", job_id=job_id))
    assert isinstance(reply, replies.JobWhy), reply
    return reply


async def line_of(world: World, job_id: JobId) -> replies.JobLine:
    reply = await world.ask(user(), ListJobs(query_id="q", selector=Selector(ids=((job_id, job_id),))))
    (line,) = reply.jobs
    assert isinstance(line, replies.JobLine)
    return line


async def offered(world: World, *jobs: dict[str, Any], strict: bool = False, rehearsal: bool = False) -> Any:
    raw = tuple(msgspec.Raw(msgspec.json.encode({"executable": "/bin/true", **each})) for each in jobs)
    submit = Submit(command_id=CommandId(f"c-{next(_NUMBERS)}"), jobs=raw, strict=strict, rehearsal=rehearsal)
    (reply,) = await world.command(user(), submit)
    return reply
