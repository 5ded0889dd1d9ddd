"""Canaries: short test jobs of the system itself, each submitted to try one computing element once.

A canary does what nearly every payload needs. It starts a shell, writes and reads a file in its directory, and finds the usual
tools. Its output is kept as with any job.
"""

from collections.abc import Iterable

import msgspec
import structlog

from services.job_manager import job_orders
from services.job_manager.submission.accept import Submissions
from wms.db import canary
from wms.db.database import Database, Transaction
from wms.ids import CeId, CommandId, Identity, JobId
from wms.jobdesc.description import JobDescription
from wms.matching.canary import GROUP, OWNER
from wms.messages.commands import Submit
from wms.site import ComputingElement

log = structlog.get_logger()

SCRIPT = """set -eu
echo "canary $WMS_JOB_ID of $WMS_PILOT at $WMS_SITE on $(uname -n), $(date -u)"
dd if=/dev/zero of=canary.block bs=65536 count=16 2>/dev/null
test "$(wc -c < canary.block)" -eq 1048576
echo "$WMS_JOB_ID" > canary.name
test "$(cat canary.name)" = "$WMS_JOB_ID"
rm canary.block canary.name
df -Pk . | tail -n 1
"""
CPU_SECONDS, WALL_SECONDS = 60, 300


def description(element: ComputingElement) -> JobDescription:
    """Return the job description of a canary (test job) for this computing element.

    It has the tags, job type and setup that the element demands, and no other requirements.
    """
    return JobDescription(
        executable="/bin/sh",
        arguments=("-c", SCRIPT),
        name=f"canary {element.site}/{element.ce}",
        cpu_time=CPU_SECONDS,
        wall_time=WALL_SECONDS,
        sites=(element.site,),
        grid_ces=(element.ce,),
        tags=element.required_tags,
        job_type=element.job_types[0] if element.job_types else "User",
        setup=element.setup or "default",
        priority=10,
        max_attempts=1,
    )


class Canaries:
    """Submits canaries (test jobs) and kills late ones. Several processes may run it: one works at a time."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions

    async def look(self, db: Database) -> None:
        """Submit canaries to computing elements whose health state asks for one, and kill those that took too long.

        Nothing happens if another process does this now.
        """
        async with db.transaction() as tx:
            if not await canary.may_look(tx):
                return
            for each in await canary.wanted(tx):
                await self.send(tx, await canary.elements(tx, each.site, each.ce), each.vo, "")
            await job_orders.kill(tx, await canary.overdue(tx), "the canary did not come back in time")

    async def send(
        self, tx: Transaction, elements: Iterable[ComputingElement], vo: str, asked_by: str
    ) -> list[JobId]:
        """Submit a canary to each of these computing elements that has no open one.

        `vo` is used unless the element accepts other VOs only. `asked_by` is the operator; empty if none asked. Return the job ids of the open
        canaries, in the order of `elements`.
        """
        out = {CeId(each.site, each.ce): each.job_id for each in await canary.unfinished(tx)}
        for element in elements:
            place = element.ce_id
            if place not in out:
                out[place] = await self._submit(tx, element, vo)
                await canary.insert(tx, out[place], *place, asked_by)
                log.info("canary sent", site=place.site, ce=place.ce, job=out[place], asked_by=asked_by)
        return [out[element.ce_id] for element in elements]

    async def _submit(self, tx: Transaction, element: ComputingElement, vo: str) -> JobId:
        if element.vos and vo not in element.vos:
            vo = element.vos[0]
        now = await tx.now()
        submit = Submit(
            command_id=CommandId(f"canary-{element.site}-{element.ce}-{now.timestamp():.6f}"),
            jobs=(msgspec.Raw(msgspec.json.encode(description(element))),),
        )
        ((first, _),) = await self._submissions.place(tx, Identity(OWNER, GROUP, vo), submit)
        return JobId(first)
