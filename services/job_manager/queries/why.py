"""Explains why a job is in its state. It uses the same functions by which the matcher and the pilot submitter decide."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import asyncpg
from msgspec.structs import asdict

from services.job_manager.queries import placement_text
from services.job_manager.queries.relaxations import relaxations
from wms.db import (
    ce_endpoint,
    ce_plan,
    ce_state,
    dependency,
    limit,
    pilot,
    queue_stats,
    read_model,
    task_queue,
    wait_reason,
)
from wms.db.database import Transaction
from wms.db.queue_stats import QueueNow
from wms.dispatch.forwarding import Forwarded, ForwardingRules
from wms.ids import CeId
from wms.job.job import Job, StopOrder
from wms.job.reasons import ADVICE
from wms.job.state import State
from wms.job.wait_reason_codes import WAIT_ADVICE, WaitCode
from wms.jobdesc.predecessors import in_words as predecessors_in_words
from wms.matching.ad_limits import notice
from wms.matching.canary import is_canary
from wms.matching.clauses import Mismatch, Negative
from wms.matching.grouping import Requirements
from wms.matching.limits import BlockingLimit, Count, Counts, LimitSet, all_jobs, blocking_limits
from wms.matching.two_sided import job_rank
from wms.messages import replies
from wms.messages.queries import WhyJob
from wms.provisioning.health import ElementHealth
from wms.provisioning.known_elements import PilotLosses
from wms.site import ComputingElement, Resource
from wms.why.forecast import forecast
from wms.why.hindrances import hindrances, in_words
from wms.why.notices import avoidance, shut_out, why_shut
from wms.why.verdict import AVOIDED, ElementSupply, Verdict, failures, verdicts
from wms.why.wait_reason_text import judge, judge_private, standing

CES_LIMIT = 200
UNSERVED = frozenset({WaitCode.NO_PILOT, WaitCode.SLOTS_BUSY})
"""The wait reasons that further pilots would end."""
OF_ADS = frozenset({"CE_ALLOWANCE", "CE_DELAYED", "CE_SUPPRESSED"})
"""The codes of limits that an element's ad states, and that only its next ad changes."""
AWAITED_SHOWN = 10
"""The most predecessors of a held job that are named."""

Losses: TypeAlias = Mapping[CeId, PilotLosses]
"""How many pilots ended and were lost within the last hour, by computing element."""
States: TypeAlias = Mapping[CeId, ElementHealth]
"""Health by computing element. An entry with an empty `ce` is that of a whole site."""


async def explain_job(
    tx: Transaction, found: Job, query: WhyJob, segments: tuple[int, ...]
) -> replies.JobWhy:
    """Return the reply that explains the state of a job: a sentence, advice, and the evidence.

    For a job that waits for any pilot, the evidence is how each computing element fits it.
    """
    if found.state is State.WAITING and not found.brokered:
        return await _explain_waiting(tx, found, query, segments)
    last = (await read_model.history(tx, found.job_id))[-1]
    code = last["reason"]
    awaited = await _awaited(tx, found) if found.state is State.HELD else ""
    return replies.JobWhy(
        query_id=query.query_id,
        client=query.client,
        job_id=found.job_id,
        state=found.state,
        code=code,
        summary=_summary(found, last) + awaited + await _placed(tx, found),
        advice=_advice(found, code),
        isolation=await read_model.isolation_of_last_attempt(tx, found.job_id),
    )


async def _placed(tx: Transaction, found: Job) -> str:
    """Return in words how far the resource broker is with the job, or at which element it placed it."""
    waits = found.brokered and found.state in (State.CHECKING, State.WAITING)
    return f"; {await placement_text.broker_progress(tx, found)}" if waits else ""


async def _awaited(tx: Transaction, found: Job) -> str:
    """Return in words the predecessors that a held job waits for, failed ones first."""
    words = []
    for each in await dependency.of_jobs(tx, ((found.job_id, found.job_id),)):
        any_end = each.predecessors.any_end
        first = await dependency.unmet(tx, each.pending, any_end, AWAITED_SHOWN + 1)
        named = [
            f"{predecessors_in_words(((one.job_id, one.last),))} ({one.state}: {one.reason})"
            for one in first[:AWAITED_SHOWN]
        ]
        more = ["..."] if len(first) > AWAITED_SHOWN else []
        words.append(f"; it waits for {', '.join([*named, *more])}" if named else "; these have ended now")
    return "".join(words)


def _advice(found: Job, code: str) -> str:
    advice = next((text for known, text in ADVICE.items() if known == code), "")
    advice = advice.replace("wms edit ID", f"wms edit {found.job_id}")
    if found.state is State.HELD and not advice:
        return f"`wms release {found.job_id}` lets it wait for a pilot again"
    return advice


def _summary(found: Job, last: asyncpg.Record) -> str:
    text = f": {last['text']}" if last["text"] else ""
    site = f" at {found.site}" if found.site else ""
    by = _by(last["source"]) if found.state in (State.HELD, State.KILLED, State.DELETED) else ""
    return f"{found.state}{by}{site} since {last['at']:%Y-%m-%d %H:%M:%S} UTC{text}{_stop(found)}"


def _stop(found: Job) -> str:
    """Return in words who asked the pilot to stop the job, and why; empty if nobody did."""
    if not found.stop_requested:
        return ""
    order = found.stop_order or StopOrder("", "")
    reason = f": {order.reason}" if order.reason else ""
    return f"; asked to stop ({found.stop_requested}){_by(order.source)}{reason}"


def _by(source: str) -> str:
    return f" by {source.removeprefix('user ')}" if source.startswith("user ") else ""


async def _explain_waiting(
    tx: Transaction, found: Job, query: WhyJob, segments: tuple[int, ...]
) -> replies.JobWhy:
    requirements = (await task_queue.read(tx, [found.tq_id]))[found.tq_id]
    places = [ElementSupply.of(*each) for each in await read_model.places(tx, requirements.vo)]
    known, losses = await ce_state.read(tx), await read_model.losses(tx)
    against = (*_avoided(known), *await _limits(tx, requirements, places))
    # Long expressions take milliseconds at each element.
    said = await asyncio.to_thread(verdicts, requirements, places, against)
    now = await queue_stats.read(tx, found.tq_id)
    outlook = standing(requirements, said, chance=await wait_reason.chance(tx, found.tq_id))
    code, text = judge_private(judge(outlook), requirements, await pilot.private(tx))
    none_sent = await _none_sent(tx, requirements, said) if code in UNSERVED else {}
    # At other sites there are no private pilots either.
    would_help = (
        ()
        if code is WaitCode.NO_PRIVATE_PILOT
        else await asyncio.to_thread(relaxations, requirements, said, segments)
    )
    return replies.JobWhy(
        query_id=query.query_id,
        client=query.client,
        job_id=found.job_id,
        state=found.state,
        code=code,
        summary="; ".join(filter(None, (text, in_words(none_sent)))),
        advice=_waiting_advice(code, said, none_sent),
        ahead=max(0, now.waiting - 1) if now else None,
        elements=_elements(requirements, said, known, losses, ForwardingRules(await ce_endpoint.terms(tx))),
        elements_total=len(said),
        elements_fitting=outlook.fitting,
        failing=failures(each for each in said if each.place.fresh),
        forecast=_forecast(found, now) if outlook.fitting > outlook.held else None,
        relaxations=would_help,
    )


async def _none_sent(tx: Transaction, requirements: Requirements, said: Iterable[Verdict]) -> dict[CeId, str]:
    """Return why the last plan sends no more pilots for the jobs to elements that they fit, by element."""
    open_ = {each.place.element.ce_id for each in said if each.opens}
    found = hindrances(requirements, (decision for _, decision in await ce_plan.read(tx)))
    return {place: why for place, why in found.items() if place in open_}


def _waiting_advice(code: WaitCode, said: Iterable[Verdict], none_sent: Mapping[CeId, str]) -> str:
    held = {each.clause for verdict in said if verdict.fits for each in verdict.held}
    if code is WaitCode.HELD_BY_LIMIT and held and held <= OF_ADS:
        return "the site's next ad says anew how many jobs may come: it waits for that"
    if code is WaitCode.NO_PILOT and none_sent:
        return "pilots are sent once what hinders them there is over"
    return WAIT_ADVICE.get(code, "")


def _avoided(known: States) -> tuple[Negative, ...]:
    """Return, as further conditions of the match, that work is kept from the avoided computing elements."""
    places = shut_out(known)

    def shut(asked: Requirements, at: Resource) -> Mismatch | None:
        why = why_shut(places, at.site, at.grid_ce)
        return Mismatch(AVOIDED, why) if why and not is_canary(asked) else None

    return (shut,) if places else ()


async def _limits(
    tx: Transaction, requirements: Requirements, places: Iterable[ElementSupply]
) -> tuple[Negative, ...]:
    """Return, as further conditions of the match, the limits on jobs that apply at these elements."""
    limits = LimitSet(limit.holding(await limit.sourced(tx)))
    elements = {place.element.ce_id: place.element for place in places}
    advertising = elements.keys() & (await limit.advertising(tx)).places
    if not (limits or advertising):
        return ()
    keys = {key for place in elements for key in limits.concerning(requirements, *place)}
    counts = await limit.counts(tx, keys | {all_jobs(*place) for place in advertising})

    def full(asked: Requirements, at: Resource) -> Mismatch | None:
        found = blocking_limits(asked, at.site, at.grid_ce, limits, counts)
        return _said(found[0], elements[CeId(at.site, at.grid_ce)], counts) if found else None

    return (full,)


def _said(found: BlockingLimit, element: ComputingElement, counts: Counts) -> Mismatch:
    """Return a blocking limit as a mismatch (a failed clause with its text). A limit of an ad is shown with the ad's own numbers."""
    if found.code == "MATCH_DELAY":
        return Mismatch(found.code, f"delay: {found.text}")
    count = counts.get(all_jobs(element.site, element.ce), Count())
    if found.code != "CE_ALLOWANCE" or (of_ad := notice(element, count.allowed, count.matched)) is None:
        return Mismatch(found.code, found.text)
    return Mismatch("CE_DELAYED" if of_ad.word == "delay" else "CE_SUPPRESSED", of_ad.text())


def _forecast(found: Job, now: QueueNow | None) -> replies.Forecast | None:
    if now is None:
        return None
    told = forecast(found.job_id, found.user_priority, now.levels, now.served, now.law)
    return replies.Forecast(**asdict(told)) if told else None


def _elements(
    requirements: Requirements, said: Sequence[Verdict], known: States, losses: Losses, ways: ForwardingRules
) -> tuple[replies.CeVerdict, ...]:
    """Return the verdicts on the elements with the fewest failing clauses, at most CES_LIMIT.

    Elements with equally many are sorted by the job's rank, then by free slots.
    """
    ranks = {id(each): _rank(requirements, each) for each in said} if requirements.rank else {}

    def nearness(verdict: Verdict) -> tuple[bool, int, float, int, int]:
        place, rank = verdict.place, ranks.get(id(verdict)) or 0.0
        return (not place.fresh, len(verdict.failing), -rank, -place.free_slots, -place.element.slots)

    nearest = sorted(said, key=nearness)[:CES_LIMIT]
    return tuple(
        _told(each, ranks.get(id(each)), known, losses, _forwarded(requirements, each, ways))
        for each in nearest
    )


def _forwarded(requirements: Requirements, verdict: Verdict, ways: ForwardingRules) -> Forwarded | None:
    fits = requirements.requirements and verdict.fits
    return ways.forward(requirements, verdict.place.element) if fits else None


def _rank(requirements: Requirements, verdict: Verdict) -> float | None:
    if not verdict.fits:
        return None
    return job_rank(requirements, verdict.place.element.pilot_resource(vo=requirements.vo))


def _told(
    verdict: Verdict, rank: float | None, known: States, losses: Losses, forwarded: Forwarded | None
) -> replies.CeVerdict:
    place = verdict.place
    name = place.element.ce_id
    hosts = forwarded and forwarded.hosts
    avoid = avoidance(ce_state.of(known, *name), losses.get(name, PilotLosses()))
    return replies.CeVerdict(
        site=place.element.site,
        ce=place.element.ce,
        fits=verdict.fits,
        clauses=tuple(f"{each.clause}: {each.detail}" for each in verdict.failing),
        pilots=place.running,
        free_slots=place.free_slots,
        fresh=place.fresh,
        limits=tuple(each.detail for each in verdict.held if each.clause != AVOIDED),
        coming=place.coming,
        slots=place.slots,
        avoid=avoid.text() if avoid else forwarded.avoided if forwarded else "",
        rank=rank,
        decided=forwarded.decided if forwarded else (),
        forwarded=hosts.asked if hosts else (),
        on_node=hosts.unasked if hosts else (),
    )
