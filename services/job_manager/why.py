"""Why a job is where it is, by the functions that the matcher itself decides with."""

from collections.abc import Sequence

import asyncpg
import msgspec

from wms.db import task_queue, view
from wms.db.database import Transaction
from wms.job.job import Job
from wms.job.reasons import ADVICE
from wms.job.state import State
from wms.messages import replies
from wms.messages.queries import WhyJob
from wms.provisioning.demand import reach
from wms.site import ComputingElement
from wms.taskqueue.grouping import Requirements
from wms.taskqueue.selection import explain

CES_LIMIT = 200


async def explain_job(tx: Transaction, found: Job, query: WhyJob) -> replies.JobWhy:
    """Return the sentence and its evidence."""
    if found.state is State.WAITING:
        return await _explain_waiting(tx, found, query)
    last = (await view.history(tx, found.job_id))[-1]
    code = last["reason"]
    return replies.JobWhy(
        query_id=query.query_id,
        client=query.client,
        job_id=found.job_id,
        state=found.state,
        code=code,
        summary=_summary(found, last),
        advice=_advice(code),
    )


def _advice(code: str) -> str:
    return next((text for known, text in ADVICE.items() if known == code), "")


def _summary(found: Job, last: asyncpg.Record) -> str:
    text = f": {last['text']}" if last["text"] else ""
    site = f" at {found.site}" if found.site else ""
    stop = f"; asked to stop ({found.stop_requested})" if found.stop_requested else ""
    return f"{found.state}{site} since {last['at']:%Y-%m-%d %H:%M:%S} UTC{text}{stop}"


async def _explain_waiting(tx: Transaction, found: Job, query: WhyJob) -> replies.JobWhy:
    requirements = (await task_queue.read(tx, [found.tq_id]))[found.tq_id]
    verdicts = [_verdict(row, requirements) for row in await view.sites(tx) if row["fresh"]]
    code, summary, advice = _verdict_of_all(verdicts)
    return replies.JobWhy(
        query_id=query.query_id,
        client=query.client,
        job_id=found.job_id,
        state=found.state,
        code=code,
        summary=summary,
        advice=advice,
        ahead=await view.waiting_in(tx, found.tq_id) - 1,
        elements=tuple(verdicts[:CES_LIMIT]),
    )


def _verdict(row: asyncpg.Record, requirements: Requirements) -> replies.CeVerdict:
    element = msgspec.json.decode(row["element"], type=ComputingElement)
    failing = explain(requirements, element.pilot_resource(vo=requirements.vo))
    unreached = reach(requirements, element)
    if not failing and unreached is not None:
        failing = [unreached]
    return replies.CeVerdict(
        site=row["site"],
        ce=row["ce"],
        fits=not failing,
        clauses=tuple(f"{each.clause}: {each.detail}" for each in failing),
        pilots=row["pilots"],
        free_slots=row["free_slots"],
    )


def _verdict_of_all(verdicts: Sequence[replies.CeVerdict]) -> tuple[str, str, str]:
    fitting = [each for each in verdicts if each.fits]
    if not verdicts:
        return "NO_SITES", "no computing element advertises itself", "`wms sites` shows when one does"
    if not fitting:
        return (
            "NO_FIT",
            f"none of the {len(verdicts)} computing elements fits what the job asks for",
            "below is which requirement fails where; submit it again with less, or wait for another site",
        )
    pilots = sum(each.pilots for each in fitting)
    if not pilots:
        return (
            "NO_PILOT",
            f"{len(fitting)} computing elements fit; no pilot is there yet",
            "one is sent within seconds",
        )
    if not sum(each.free_slots for each in fitting):
        return (
            "SLOTS_BUSY",
            f"{len(fitting)} computing elements fit; all slots of their {pilots} pilots are busy",
            "",
        )
    return "SOON", f"{len(fitting)} computing elements fit and have free slots: it is offered next", ""
