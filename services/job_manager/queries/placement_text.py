"""Says in words how far the resource broker is with a job, or at which computing element it placed it."""

from collections.abc import Mapping
from datetime import datetime

from wms.db import brokering, ce_state, job_record, placement
from wms.db.database import Transaction
from wms.db.placement import Placement
from wms.ids import CeId
from wms.job.job import Job
from wms.job.state import State
from wms.provisioning.health import ElementHealth

NAMED = 3
"""The largest number of failed placements that a text names. The latest ones are named."""


async def broker_progress(tx: Transaction, found: Job) -> str:
    """Return in words how far the resource broker is with a job that it places, with the placements that failed.

    The job is in Checking (not placed yet) or Waiting (for the pilot of its placement).
    """
    all_ = await placement.of_job(tx, found.job_id)
    failed = _failed([each for each in all_ if not each.is_open])
    if found.state is State.CHECKING:
        return await _asked(tx, found) + failed
    known = await ce_state.read(tx)
    words = [_in_words(each, known) for each in all_ if each.is_open]
    return (words[0] if words else "the broker has not placed it yet") + failed


async def _asked(tx: Transaction, found: Job) -> str:
    order = await brokering.asked(tx, found.job_id)
    if order is None:
        return "the broker has not been asked to place it"
    again = f", {order.tries} times" if order.tries > 1 else ""
    record = await job_record.of_job(tx, found.job_id)
    why = f": {record.reason}, {record.reason_text}" if record and record.reason else ""
    return f"the broker was asked at {_time(order.asked_at)} to place it{again}, and has not yet{why}"


def _in_words(each: Placement, known: Mapping[CeId, ElementHealth]) -> str:
    where = f"the broker placed it at {each.site}/{each.ce} (placement {each.attempt}, rank {each.rank})"
    how = {"Ordered": _sending(each, known), "Sent": f"it waits for pilot {each.pilot_id}"}
    parts = [where, how.get(each.state, f"it is with pilot {each.pilot_id}")]
    parts += [f"reserved from {_time(each.start_at)}"] if each.start_at else []
    parts += [f"it must start by {_time(each.latest_start)}"] if each.latest_start else []
    return ", ".join(parts)


def _sending(each: Placement, known: Mapping[CeId, ElementHealth]) -> str:
    """Return in words how far the sending of a placement's pilot is.

    An element that hangs may have taken the pilot. Until it says so, no other gets the job.
    """
    if each.pilot_id is None:
        return "its pilot is about to be sent"
    health = ce_state.of(known, each.site, each.ce)
    why = f" ({health.reason})" if health.state != "healthy" and health.reason else ""
    return (
        f"pilot {each.pilot_id} is being sent since {_time(each.changed_at)}, and the element has not said whether it has arrived{why}; the next"
        " best element gets the job once it is certain that it has not"
    )


def _failed(closed: list[Placement]) -> str:
    words = [
        f"{each.site}/{each.ce}: {each.reason_text or each.reason}"
        for each in reversed(closed[-NAMED:])
        if each.reason
    ]
    return f"; before that at {'; '.join(words)}" if words else ""


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
