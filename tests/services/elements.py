"""Two elements, of which one eats its jobs."""

import itertools
from typing import Any

import msgspec

from services.pilot_submitter.ce_health import HealthJudge
from tests.services.world import World, ids, pilot, result, user
from wms.auth.principal import Principal
from wms.ids import AttemptId, CommandId, JobId
from wms.job.reasons import Code
from wms.matching.canary import OWNER
from wms.messages.commands import RuleSite
from wms.messages.queries import ListSites
from wms.provisioning.health import HealthPolicy

NUMBERS = itertools.count(1)


OPS = user("oz", "operator")


TERMS = HealthPolicy(failures=4, first_pause_seconds=60)


class Place:
    """Site A with the elements `good` and `hole`, and what watches over them."""

    def __init__(self, world: World, watch: HealthJudge) -> None:
        self.world = world
        self._watch = watch

    async def look(self) -> None:
        """Have everybody look once: the submitter's watch, the job manager's canaries, the matcher."""
        await self._watch.look()
        await self.world.canaries.look(self.world.db)
        await self.world.standing.refresh()

    async def run(self, ce: str, count: int, code: Code = Code.DONE) -> list[JobId]:
        """Have a new pilot at an element take up to so many jobs, which all end like this; return them."""
        who = msgspec.structs.replace(pilot(f"p-{next(NUMBERS)}"), ce=ce)
        held = await self.world.match(who, count)
        await self._end(who, held, code)
        return ids(held)

    async def _end(self, who: Principal, held: list[AttemptId], code: Code) -> None:
        if held:
            await self.world.report(who, accept=tuple(held))
            await self.world.report(who, start=tuple(held))
            outcome = "done" if code is Code.DONE else "failed"
            await self.world.report(who, finish=tuple(result(each, outcome, code) for each in held))

    async def eaten(self, jobs: int = 4) -> None:
        """Let `hole` eat jobs of the same kind that do well at `good`: a fault that is injected."""
        await self.world.submitted(2 * jobs)
        assert len(await self.run("good", jobs)) == jobs
        assert len(await self.run("hole", jobs, Code.EXIT_CODE)) == jobs
        await self.look()

    async def later(self, seconds: float) -> None:
        """Let so much time pass for elements and canaries."""
        await self.world.sql("update ce_state set until = until - make_interval(secs => $1)", seconds)
        await self.world.sql("update canary set sent_at = sent_at - make_interval(secs => $1)", seconds)

    async def rule(self, action: Any, ce: str = "", who: Principal = OPS, reason: str = "why not") -> Any:
        command = RuleSite(
            command_id=CommandId(f"c-{next(NUMBERS)}"), action=action, site="A", ce=ce, reason=reason
        )
        (reply,) = await self.world.command(who, command)
        await self.look()
        return reply

    async def states(self) -> dict[str, str]:
        found = await self.world.ask(user(), ListSites(query_id="q"))
        return {each.ce: each.state for each in found.sites}

    async def canaries(self) -> list[JobId]:
        rows = await self.world.sql("select job_id from job where owner = $1 order by job_id", OWNER)
        return [row["job_id"] for row in rows]
