"""Jobs that are sent directly as batch jobs: this service holds their leases and reports on them, in place of a job agent.

A stored pilot stands for each job. Under its id the service asks for the job, accepts it, renews its lease and reports on it.
It sends the same messages as a pilot at a site, and reads the answers from the database. All state is in the database and at
the elements, so that another instance can go on after a crash.
"""

import asyncio
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import structlog

from services.pilot_submitter.bound_pilot import purpose_of, request_of
from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints
from services.pilot_submitter.config import PilotSandboxSettings
from services.pilot_submitter.direct_outcome import has_begun, refused_input, result_of
from services.pilot_submitter.direct_payload import payload_of
from services.pilot_submitter.direct_staging import staged_files
from services.pilot_submitter.direct_step import DirectStep, next_step
from services.pilot_submitter.element_calls import ElementCalls
from services.pilot_submitter.pilot_factory import PilotFactory, policy_of
from services.pilot_submitter.placement_execution import SOURCE
from wms import faultpoint
from wms.broker.placement import PlacementEvent, PlacementFault, PlacementState
from wms.db import ad, direct_job, pilot, placement
from wms.db.database import Database
from wms.db.direct_job import DirectJob
from wms.db.pilot import Followed, TokenDue
from wms.db.placement import PlacementFailure, PlacementMark
from wms.dispatch.direct import DirectDispatcher
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.errors import Rejected, Unavailable
from wms.ids import CeId, InstanceId, PilotId, ReportId, RequestId
from wms.messages import match_requests, reports
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Report
from wms.messages.wire import encode
from wms.runtime import clock
from wms.transfer import open_store

log = structlog.get_logger()

AT_ONCE = 500
HELD_SECONDS = 30.0
"""Seconds of silence of the instance that holds a job, after which another one takes the job over."""
ASK_AGAIN_SECONDS = 5.0
DIRECT = "direct"
"""What is reported as the isolation of a job that is sent directly: it has none."""
MARGIN_SECONDS = 10.0
"""Seconds by which the batch job's copy of its lease ends before the lease: shared file systems show changes late.

The margin is at most a third of the time that the lease has left.
"""


class Sender(Protocol):
    """An object that can send messages, such as a connection to the message broker."""

    async def send(self, topic: str, key: str, payload: bytes, token: str = "") -> None:
        """Send a message to a topic, under a partition key. `token` authenticates the sender; empty: without a token."""


class DirectJobs:
    """Holds the leases of jobs that are sent directly as batch jobs, and reports on them. Any number of instances may run."""

    def __init__(
        self,
        db: Database,
        sender: Sender,
        endpoints: CeEndpoints,
        maker: PilotFactory,
        instance_id: InstanceId,
        *,
        sandboxes: PilotSandboxSettings,
        directory: Path,
        calls: ElementCalls | None = None,
    ) -> None:
        """Build the keeper of direct jobs; `maker` makes the tokens under which it acts for each job.

        `sandboxes` says where the sandbox store is. Inputs of a job are unpacked below `directory` before it is sent. `calls` are
        how it calls elements; None: each round waits for the slowest element.
        """
        self._db = db
        self._sender = sender
        self._endpoints = endpoints
        self._maker = maker
        self._instance_id = instance_id
        self._sandboxes = sandboxes
        self._directory = directory
        self._calls = calls or ElementCalls()
        self._tokens: dict[PilotId, tuple[str, float]] = {}
        self._asked: dict[PilotId, float] = {}
        self._longest: dict[PilotId, float] = {}
        """For each pilot, the most seconds that its lease was ever seen to have left: its length just after a renewal."""

    async def look(self) -> None:
        """Do the next step for each directly sent job that this instance holds, such as to accept, send, renew or report it.

        Jobs whose holder is silent are taken over. If an element or service does not answer, the step is tried again by the
        next call. Jobs at an element that still answers an earlier call are left for a later one.
        """
        async with self._db.transaction() as tx:
            held = await direct_job.hold(tx, self._instance_id, HELD_SECONDS, AT_ONCE)
        self._forget(held)
        await self._calls.run(
            {
                endpoint: self._look_at(endpoint, jobs)
                for endpoint, jobs in self._endpoints.behind(held).items()
                if not self._calls.is_busy(endpoint)
            }
        )

    def _forget(self, held: Sequence[DirectJob]) -> None:
        names = {each.pilot_id for each in held}
        for known in (self._tokens, self._asked, self._longest):
            for gone in known.keys() - names:
                del known[gone]

    async def _look_at(self, endpoint: CeEndpoint, jobs: Sequence[DirectJob]) -> None:
        names = [each.pilot_id for each in jobs if each.phase == "accepted"]
        told = await endpoint.ask(endpoint.dispatcher.follow(names)) if names and endpoint.reachable else None
        seen = {each.pilot_id: each for each in told or ()}
        if told is not None:
            endpoint.followed()
        for job in jobs:
            try:
                await self._act(endpoint, job, seen.get(job.pilot_id))
            except Unavailable as error:
                log.warning("direct job not looked after", job=job.job_id, error=str(error))

    async def _act(self, endpoint: CeEndpoint, job: DirectJob, seen: PilotSighting | None) -> None:
        step = next_step(job, seen)
        assert isinstance(endpoint.dispatcher, DirectDispatcher)
        if job.is_sent and step in ("renew", "start", "note") and job.seconds_left is not None:
            left = job.seconds_left
            await endpoint.dispatcher.extend(
                job.pilot_id, int(clock.timestamp() * 1_000), left - min(MARGIN_SECONDS, left / 3)
            )
        if step == "finish" and seen is not None:
            await self._finish(endpoint.dispatcher, job, seen)
        elif step == "send":
            await self._send(endpoint, job)
        elif step == "note" and seen is not None:
            await self._note(job, seen)
        elif step in ("cancel", "forget"):
            await endpoint.ask(_done(endpoint, job.pilot_id))
            if step == "cancel":
                await self._renew(job)
        else:
            await self._tell(job, step)

    async def _tell(self, job: DirectJob, step: DirectStep) -> None:
        """Send the message that a job agent would send for this step; for `give up`, fail the placement instead."""
        attempt = (job.attempt_id,)
        if step == "ask":
            await self._ask(job)
        elif step == "give up":
            await self._give_up(job)
        elif step == "accept":
            await self._report(job, accept=attempt)
        elif step == "decline":
            await self._report(job, decline=attempt, reason="its latest start has passed", state="ended")
        elif step == "start":
            await self._report(job, start=attempt, renew=attempt)
        else:
            await self._renew(job)

    async def _renew(self, job: DirectJob) -> None:
        left = job.seconds_left or 0.0
        longest = self._longest[job.pilot_id] = max(left, self._longest.get(job.pilot_id, 0.0))
        if left < longest * 2 / 3:
            await self._report(job, renew=(job.attempt_id,))

    # --- messages ---------------------------------------------------------------------------------

    async def _ask(self, job: DirectJob) -> None:
        last = self._asked.get(job.pilot_id)
        if last is not None and time.monotonic() - last < ASK_AGAIN_SECONDS:
            return
        self._asked[job.pilot_id] = time.monotonic()
        request = MatchRequest(
            request_id=RequestId(f"{job.pilot_id}-direct"),
            pilot_id=job.pilot_id,
            resource=job.offers,
            again=last is not None,
        )
        await self._sender.send(match_requests.TOPIC, job.pilot_id, encode(request), self._token(job))

    async def _report(self, job: DirectJob, **parts: object) -> None:
        report = Report(
            report_id=ReportId(uuid.uuid4().hex),
            pilot_id=job.pilot_id,
            slots=job.slots,
            busy=job.slots,
            isolation=DIRECT,
            **parts,  # type: ignore[arg-type]
        )
        await self._sender.send(reports.TOPIC, job.pilot_id, encode(report), self._token(job))

    def _token(self, job: DirectJob) -> str:
        token, until = self._tokens.get(job.pilot_id, ("", 0.0))
        if time.monotonic() >= until:
            due = TokenDue(
                pilot_id=job.pilot_id,
                site=job.site,
                ce=job.ce,
                vo=job.vo,
                owner_group=job.owner_group,
                owner=job.owner,
                job_id=job.job_id,
            )
            token = self._maker.token(due)
            self._tokens[job.pilot_id] = token, time.monotonic() + self._maker.token_seconds / 2
        return token

    async def _give_up(self, job: DirectJob) -> None:
        failure = PlacementFailure(
            job_id=job.job_id,
            attempt=job.attempt,
            site=job.site,
            ce=job.ce,
            code=PlacementFault.NOT_TAKEN,
            text="the job does not fit what the element offers",
        )
        async with self._db.transaction() as tx:
            await placement.fail(tx, [failure], SOURCE)

    # --- the batch job ----------------------------------------------------------------------------

    async def _send(self, endpoint: CeEndpoint, job: DirectJob) -> None:
        """Unpack the job's inputs and submit the batch job; do nothing while its endpoint pauses.

        The batch job waits until its lease is written to its directory, and then begins. A job whose inputs cannot be had is
        reported as failed, a refused one as declined.
        """
        if not endpoint.open:
            return
        try:
            order = await self._order(endpoint, job)
        except Rejected as fault:
            await self._report(job, finish=(refused_input(job, fault),), state="ended")
            return
        if order is None:
            return
        sightings = await endpoint.ask(endpoint.dispatcher.send([order]))
        faultpoint.reach("placing.after_direct_send")
        for each in sightings or ():
            log.info(
                "job sent directly", job=job.job_id, pilot=job.pilot_id, state=each.state, reason=each.reason
            )
            if each.ended:
                await self._report(job, decline=(job.attempt_id,), reason=each.reason[:500], state="ended")
            else:
                await self._note(job, each)

    async def _order(self, endpoint: CeEndpoint, job: DirectJob) -> PilotRequest | None:
        async with self._db.transaction() as tx:
            elements = {each.ce_id: each for each in await ad.fresh(tx)}
            work = (await placement.work(tx, [job.job_id])).get(job.job_id)
            placed = (await placement.open_of(tx, [job.job_id])).get(job.job_id)
            description = (await direct_job.descriptions(tx, [job.job_id])).get(job.job_id)
        element = elements.get(CeId(job.site, job.ce))
        if element is None or work is None or placed is None or description is None:
            return None
        request = request_of(placed, work, element, endpoint)
        store = open_store(self._sandboxes.url, self._sandboxes.s3)
        staged = staged_files(description, endpoint.dispatcher, self._maker.transfers(endpoint).access)
        payload = await payload_of(job, description, store, self._directory / job.pilot_id, staged)
        return PilotRequest(
            pilot_id=job.pilot_id,
            site=job.site,
            ce=job.ce,
            slots=job.slots,
            config="",
            token="",
            request=request,
            policy=policy_of(job.vo, request, purpose_of(work.requirements)),
            payload=payload,
        )

    async def _note(self, job: DirectJob, seen: PilotSighting) -> None:
        """Store that the element has accepted the job, by the element's report `seen`."""
        followed = Followed(
            pilot_id=job.pilot_id,
            state="Submitted" if seen.ended else seen.state,
            reference=seen.reference,
            reason=seen.reason,
        )
        mark = PlacementMark(job_id=job.job_id, attempt=job.attempt)
        async with self._db.transaction() as tx:
            await pilot.update(tx, [followed])
            await placement.mark(tx, PlacementEvent.SEND, PlacementState.SENT, [mark])

    async def _finish(self, dispatcher: DirectDispatcher, job: DirectJob, seen: PilotSighting) -> None:
        """Fetch the outputs of an ended batch job and report its end, by the element's last report `seen`.

        A job that is past its latest start and never began is declined instead.
        """
        end = await dispatcher.collect(job.pilot_id)
        if job.is_late and not job.stop_requested and not has_begun(job, end, seen):
            await self._tell(job, "decline")
            return
        async with self._db.transaction() as tx:
            description = (await direct_job.descriptions(tx, [job.job_id]))[job.job_id]
        store = open_store(self._sandboxes.url, self._sandboxes.s3)
        result = await asyncio.to_thread(result_of, job, description, seen, end, store)
        if result.began and job.state == "Matched":
            await self._report(job, start=(job.attempt_id,))
        await self._report(job, finish=(result,), state="ended")
        log.info(
            "direct job ended", job=job.job_id, outcome=result.outcome, code=result.code, text=result.text
        )


async def _done(endpoint: CeEndpoint, pilot_id: PilotId) -> bool:
    await endpoint.dispatcher.cancel([pilot_id])
    return True
