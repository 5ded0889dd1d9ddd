"""What the holder of a direct job's lease does next: one pure decision from the lease, the element and the user's orders."""

from typing import Literal

from wms.db.direct_job import DirectJob
from wms.dispatch.port import PilotSighting

DirectStep = Literal[
    "ask", "give up", "accept", "decline", "send", "note", "start", "cancel", "finish", "renew", "forget"
]
"""ask: for the job; give up: nobody gave it; accept, decline: the offer or the lease; send: the batch job; note: that it is there;
start, renew, finish: report it; cancel: the batch job; forget: the lease is lost."""


PATIENCE_SECONDS = 60.0
"""Seconds in which a job is given to the pilot that stands for it, or does not fit there."""


def next_step(job: DirectJob, seen: PilotSighting | None) -> DirectStep:
    """Return the next step; `seen` is the element's word on the batch job, None if it does not answer now."""
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
