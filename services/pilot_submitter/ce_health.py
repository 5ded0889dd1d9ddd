"""Judges the health of computing elements by outcomes of jobs, canaries (small test jobs) and pilots, and stores it.

One instance judges at a time. The job manager submits the canaries as ordinary jobs: to elements in state `probing`, and to
those that an operator tests.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import structlog

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from wms.db import canary, ce_state, pilot
from wms.db.canary import Canary
from wms.db.database import Database, Transaction
from wms.db.pilot import LivePilot
from wms.ids import CeId, PilotId
from wms.job.state import ENDED
from wms.provisioning.health import ElementHealth, Event, HealthChange, HealthPolicy, judge, wants_probe

log = structlog.get_logger()

US = "pilot_submitter"


class HealthJudge:
    """Judges the health of all computing elements in rounds: one instance of the pilot submitter at a time.

    `endpoints` are where the elements are reached, and `terms` the limits by which health is judged.
    """

    def __init__(self, db: Database, endpoints: CeEndpoints, terms: HealthPolicy) -> None:
        self._db = db
        self._endpoints = endpoints
        self._terms = terms
        self._withdrawn: set[PilotId] = set()

    async def look(self) -> None:
        """Judge all elements once and store changes of their health; then cancel pilots that have not started at banned elements.

        It does nothing while another instance judges.
        """
        async with self._db.transaction() as tx:
            if not await ce_state.may_judge(tx):
                return
            await self._judge(tx)
            await self._read_canaries(tx)
            known = await ce_state.read(tx)
            await self._probe(tx, known)
            await self._tell_endpoints(tx, known)
            unwanted = await self._unwanted(tx, known)
        await self._withdraw(unwanted)

    @staticmethod
    async def _unwanted(tx: Transaction, known: dict[CeId, ElementHealth]) -> list[LivePilot]:
        """Return the pilots at banned elements that have not started, except at elements where a canary is under way.

        `known` is the stored health of elements.
        """
        banned = [place for place, health in known.items() if health.state == "banned"]
        if not banned:
            return []
        tried = {CeId(each.site, each.ce) for each in await canary.unfinished(tx)}
        return [
            each
            for each in await pilot.alive(tx)
            if each.state in ("Submitted", "Waiting")
            and CeId(each.site, each.ce) not in tried
            and ce_state.of(known, each.site, each.ce).state == "banned"
        ]

    async def _judge(self, tx: Transaction) -> None:
        suspects = await ce_state.suspects(tx, self._terms)
        if not suspects:
            return
        for verdict in judge(await ce_state.tried(tx, self._terms), self._terms):
            if CeId(verdict.site, verdict.ce) in suspects:
                await self._move(tx, CeId(verdict.site, verdict.ce), "eat", verdict.reason)

    async def _read_canaries(self, tx: Transaction) -> None:
        for each in await canary.unfinished(tx):
            if outcome := self._outcome(each):
                await canary.close(tx, each.job_id, outcome)
                event: Event = "release" if outcome == "Done" else "relapse"
                why = f"canary {each.job_id} {_WHAT[outcome]}"
                await self._move(tx, CeId(each.site, each.ce), event, why)

    def _outcome(self, each: Canary) -> canary.Outcome | None:
        if each.state == "Done":
            return "Done"
        if each.state is None or each.state in ENDED:
            return "Killed" if each.state == "Killed" else "Failed"
        return "late" if each.age > self._terms.probe_seconds else None

    async def _probe(self, tx: Transaction, known: dict[CeId, ElementHealth]) -> None:
        now = await tx.now()
        for place, health in known.items():
            if wants_probe(health, now):
                await self._move(tx, place, "probe", health.reason)

    async def _tell_endpoints(self, tx: Transaction, known: dict[CeId, ElementHealth]) -> None:
        """Store `backing-off` for healthy elements whose endpoint pauses, and end that state where no pause lasts any more.

        `known` is the stored health of elements.
        """
        shut = {endpoint.place: endpoint for endpoint in self._endpoints.shut()}
        for place, endpoint in shut.items():
            if known.get(place, ElementHealth()).state == "healthy":
                pause = timedelta(seconds=endpoint.pause_seconds)
                await self._move(tx, place, "fail", endpoint.why_shut, pause)
        for place, health in known.items():
            if health.state == "backing-off" and place not in shut and self._endpoints.has(place):
                await self._move(tx, place, "recover", "it is tried again")

    async def _move(
        self, tx: Transaction, place: CeId, event: Event, why: str, pause: timedelta | None = None
    ) -> None:
        after = await ce_state.move(tx, place, HealthChange(event, why, US, pause), self._terms)
        if after is not None:
            log.warning(
                "element changed", site=place.site, ce=place.ce, move=event, state=after.state, reason=why
            )

    async def _withdraw(self, pilots: Iterable[LivePilot]) -> None:
        asked = [each for each in pilots if each.pilot_id not in self._withdrawn]
        for endpoint, some in self._endpoints.behind(asked).items():
            await endpoint.ask(self._cancel(endpoint, [each.pilot_id for each in some]))

    async def _cancel(self, endpoint: CeEndpoint, names: Sequence[PilotId]) -> None:
        async with self._db.transaction() as tx:
            await pilot.cancelled(tx, names)
        await endpoint.dispatcher.cancel(names)
        self._withdrawn.update(names)


_WHAT = {
    "Done": "came back well",
    "Failed": "failed",
    "Killed": "was killed",
    "late": "did not come back in time",
}
