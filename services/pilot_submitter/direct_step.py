"""Decides the next step for a job sent directly as a batch job: by its lease, its element's report and its user's orders to stop it."""

from typing import Literal

from wms.db.direct_job import DirectJob
from wms.dispatch.port import PilotSighting

DirectStep = Literal[
    "ask", "give up", "accept", "decline", "send", "note", "start", "cancel", "finish", "renew", "forget"
]
"""The steps, which the service does in place of a job agent.

ask: ask the matcher for the job. give up: fail the placement, since no matcher offered the job in time. accept: accept the
offer. decline: return the offer or the lease. send: submit the batch job. note: store that it was submitted. start, renew,
finish: report that the job runs, goes on, or has ended. cancel: cancel the batch job, as its user ordered or since it is late.
forget: cancel the batch job, since its lease is lost.
"""


PATIENCE_SECONDS = 60.0
"""How long the matcher has to offer the job, in seconds. After that the job counts as not fitting there, and its placement fails."""


def next_step(job: DirectJob, seen: PilotSighting | None) -> DirectStep:
    """Return the next step for a directly sent job.

    `seen` is the element's report on the batch job; None if the element does not answer now, or was not asked.
    """
    if job.phase is None:
        return _without_lease(job)
    if job.phase == "offered":
        return "decline" if job.is_late else "accept"
    if seen is None:
        return "renew"
    if not job.is_sent:
        return _unsent(job, seen)
    if seen.ended:
        return "finish"
    return _under_way(job, seen)


def _without_lease(job: DirectJob) -> DirectStep:
    if job.is_sent:
        return "forget"
    return "give up" if job.age > PATIENCE_SECONDS else "ask"


def _unsent(job: DirectJob, seen: PilotSighting) -> DirectStep:
    if seen.lost is None and seen.state != "Aborted":
        return "note"  # whoever sent it died before it wrote that
    return "decline" if job.is_late or job.stop_requested else "send"


def _under_way(job: DirectJob, seen: PilotSighting) -> DirectStep:
    has_begun = job.state != "Matched"
    if job.stop_requested or (job.is_late and not has_begun and seen.state != "Running"):
        return "cancel"
    return "start" if seen.state == "Running" and not has_begun else "renew"
