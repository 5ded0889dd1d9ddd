"""Carries out operators' orders on sites and computing elements (ban, unban, drain, test, forget), and answers queries about them."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NoReturn

import asyncpg
import msgspec
from msgspec.structs import asdict

from services.job_manager.maintenance.canaries import Canaries
from services.job_manager.queries.paging import REPLY_BYTES, fitting, page, read_page
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import ad, canary, ce_plan, ce_state, limit, operator_order, read_model
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import CeId
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.commands import RuleSite
from wms.provisioning.health import ElementHealth, Event, HealthChange, HealthPolicy
from wms.provisioning.known_elements import PilotLosses
from wms.provisioning.plan_report import ElementDecision
from wms.why.notices import SinceLastAd, notices

HISTORY = 100
AD_BYTES, WHOLE_AD_BYTES, SHORT_BYTES = 65_536, 500_000, 1_024
"""The most bytes of an ad in a list, of an ad shown alone, and of a value that remains when a larger ad is cut."""
TERMS = HealthPolicy()
"""The policy for health states by which orders change a computing element. For orders the default values suffice."""
EVERYWHERE = CeId("", "")

UNREADABLE = "unreadable: a value of its ad is out of bounds, so that nothing is sent there: let its site advertise it anew"


async def carry_out(
    tx: Transaction, principal: Principal, rule: RuleSite, canaries: Canaries
) -> tuple[str, tuple[int, ...]]:
    """Carry out an operator's order in this transaction. Return the new state in words, and the ids of open test jobs (canaries).

    Raise Rejected if the sender is no operator, the site or element is unknown, or its state does not allow the order.
    """
    if not allowed(principal, "administer", "", "", ""):
        raise Rejected("NOT_ALLOWED", "you have no right to rule sites", "operators have: right operator")
    if not await canary.is_known(tx, rule.site, rule.ce):
        name = _name(CeId(rule.site, rule.ce))
        raise Rejected("NO_SUCH_SITE", f"nothing was ever heard of {name}", "`wms sites` lists all")
    match rule.action:
        case "ban" | "drain":
            return await _close(tx, principal, rule), ()
        case "unban":
            return await _open(tx, principal, rule), ()
        case "test":
            return await _test(tx, principal, rule, canaries)
        case "forget":
            return await _forget(tx, principal, rule), ()


async def _close(tx: Transaction, principal: Principal, rule: RuleSite) -> str:
    assert rule.action in ("ban", "drain")
    if not rule.reason.strip():
        raise Rejected("NO_REASON", f"a {rule.action} says why", "give --reason")
    place = CeId(rule.site, rule.ce)
    event: Event = "ban" if rule.action == "ban" else "drain"
    after = await ce_state.move(tx, place, HealthChange(event, rule.reason, principal.owner), TERMS)
    assert after is not None, "every state has these moves"
    return f"{_name(place)} is {after.text()}"


async def _open(tx: Transaction, principal: Principal, rule: RuleSite) -> str:
    """Reopen a computing element; if a whole site is named, all elements there that were banned or drained.

    Return the result in words.
    """
    known = await ce_state.read(tx)
    named = CeId(rule.site, rule.ce)
    places = [named] if rule.ce else [place for place in known if place.site == rule.site]
    shut = [place for place in places if _may_open(known.get(place, ElementHealth()), by_name=place == named)]
    whole = known.get(CeId(rule.site, ""), ElementHealth())
    if rule.ce and whole.avoided:
        raise Rejected("SITE_CLOSED", f"{rule.site} as a whole is {whole.text()}", f"unban {rule.site}")
    if not shut:
        raise Rejected(
            "NOT_SET", f"{_name(named)} is not banned, drained or quarantined", "`wms sites` tells"
        )
    for place in shut:
        await ce_state.move(tx, place, HealthChange("unban", rule.reason, principal.owner), TERMS)
    return f"{', '.join(map(_name, shut))} {'is' if len(shut) == 1 else 'are'} healthy"


def _may_open(health: ElementHealth, *, by_name: bool) -> bool:
    return health.state in ("banned", "draining") or (by_name and health.avoided)


async def _test(
    tx: Transaction, principal: Principal, rule: RuleSite, canaries: Canaries
) -> tuple[str, tuple[int, ...]]:
    elements = await canary.elements(tx, rule.site, rule.ce)
    if not elements:
        name = _name(CeId(rule.site, rule.ce))
        raise Rejected("NO_AD", f"{name} does not advertise itself now", "is its advertiser running?")
    for element in elements:
        reason = rule.reason or "an operator wants to know"
        await ce_state.move(tx, element.ce_id, HealthChange("probe", reason, principal.owner), TERMS)
    jobs = await canaries.send(tx, elements, principal.vo, principal.owner)
    names = ", ".join(f"{job} at {each.ce}" for job, each in zip(jobs, elements, strict=True))
    return f"canaries are out: {names}", tuple(jobs)


async def _forget(tx: Transaction, principal: Principal, rule: RuleSite) -> str:
    """Remove the ads of an element or of a whole site, and return the result in words. A ban stays."""
    gone = await ad.forget(tx, rule.site, rule.ce)
    if not gone:
        raise Rejected(
            "NO_AD", f"{_name(CeId(rule.site, rule.ce))} has no ad", "`wms sites` lists all that have"
        )
    await limit.end_ads(tx, gone)
    names = [_name(place) for place in sorted(gone)]
    await operator_order.record(tx, principal.owner, "forget site", names, rule.reason)
    return f"forgotten: {', '.join(names)}; what still advertises itself comes back, unless it is banned"


def _name(place: CeId) -> str:
    return "/".join(filter(None, place))


# --- what people are told ------------------------------------------------------------------------------


async def list_sites(tx: Transaction, _: Principal, query: asked.ListSites) -> replies.Sites:
    """Return a page of the computing elements that have an ad, or lately had one."""
    sites, after = await read_page(await _reader(tx, AD_BYTES), query.after, query.limit)
    return replies.Sites(query_id=query.query_id, client=query.client, sites=sites, after=after)


async def show_site(tx: Transaction, _: Principal, query: asked.ShowSite) -> replies.SiteDetail:
    """Return everything about a site, or about one computing element with its history. Raise Rejected if nothing is known of it."""
    place = CeId(query.site, query.ce)
    read = await _reader(tx, WHOLE_AD_BYTES if query.ce else AD_BYTES, place)
    elements, _after = await read_page(read, 0, asked.PAGE_LIMIT)
    moves = await ce_state.moves(tx, *place, HISTORY)
    if not elements and not moves:
        _no_such(place)
    plans = [_plan_line(*each) for each in await ce_plan.read(tx, query.site) if _is_of(each[1], place)]
    room = max(0, REPLY_BYTES - len(msgspec.json.encode((elements, moves))))
    return replies.SiteDetail(
        query_id=query.query_id,
        client=query.client,
        elements=elements,
        moves=tuple(moves),
        canaries=tuple(await canary.of_place(tx, *place, HISTORY)),
        plans=tuple(fitting(plans, room)),
    )


def _no_such(place: CeId) -> NoReturn:
    raise Rejected("NO_SUCH_SITE", f"nothing is known of {_name(place)}", "`wms sites` lists all")


def _is_of(each: Any, place: CeId) -> bool:
    return bool(each.site == place.site and place.ce in ("", each.ce))


async def list_plans(tx: Transaction, _: Principal, query: asked.ListPlans) -> replies.Plans:
    """Return a page of the last decisions on how many pilots to send to each computing element."""
    lines = [_plan_line(*each) for each in await ce_plan.read(tx)]
    plans, after = page(lines, query.after, query.limit)
    return replies.Plans(query_id=query.query_id, client=query.client, plans=plans, after=after)


def _plan_line(decided_at: datetime, decision: ElementDecision) -> replies.PlanLine:
    shares = tuple(replies.Share(**asdict(each)) for each in decision.shares)
    return replies.PlanLine(
        decided_at=decided_at, decision=replies.Decision(**{**asdict(decision), "shares": shares})
    )


async def _reader(
    tx: Transaction, ad_bytes: int, place: CeId = EVERYWHERE
) -> Callable[[int, int], Awaitable[list[replies.SiteLine]]]:
    """Return a function `read(after, limit)`. It returns at most `limit` lines on the computing elements of a place, from index `after` on.

    Ads in these lines have at most `ad_bytes` bytes.
    """
    known, losses = await ce_state.read(tx), await read_model.losses(tx)

    async def read(after: int, limit: int) -> list[replies.SiteLine]:
        return [
            _line(row, ce_state.of(known, *there), losses.get(there, PilotLosses()), ad_bytes)
            for row in await read_model.sites(tx, after, limit, *place)
            for there in [CeId(row["site"], row["ce"])]
        ]

    return read


def _said(element: str, most: int) -> dict[str, Any]:
    """Return the content of an ad. If it has more than `most` bytes, return its short values and its size."""
    said: dict[str, Any] = msgspec.json.decode(element)
    if len(element) <= most:
        return said
    short = {name: value for name, value in said.items() if len(msgspec.json.encode(value)) <= SHORT_BYTES}
    return {**short, "omitted_bytes": len(element)}


def _jobs_there(row: asyncpg.Record, said: dict[str, Any]) -> replies.JobsThere:
    # Once an ad expires, nothing comes until the next.
    allowed = row["allowed"] if row["fresh"] or row["allowed"] is None else 0
    return replies.JobsThere(
        source=said.get("current_jobs", 0),
        source_submitting=said.get("current_submitting_jobs", 0),
        pilots=row["pilots"],
        jobs=row["running_jobs"],
        unseen=row["unseen"],
        idle=row["idle"],
        pilots_left=None if allowed is None else max(0, allowed - row["sent"]),
        jobs_left=None if allowed is None else max(0, allowed - row["matched"]),
    )


def _line(row: asyncpg.Record, health: ElementHealth, losses: PilotLosses, ad_bytes: int) -> replies.SiteLine:
    element = ad.element_of(row["element"])
    said = _said(row["element"], ad_bytes) if element else {}
    since = SinceLastAd(row["allowed"], row["matched"], row["sent"], row["idle"])
    said_of = (
        [each.text() for each in notices(element, since, health, losses, fresh=row["fresh"])]
        if element
        else [UNREADABLE]
    )
    return replies.SiteLine(
        site=row["site"],
        ce=row["ce"],
        dispatcher=said.get("dispatcher", ""),
        advertised_at=row["advertised_at"],
        expires_at=row["expires_at"],
        fresh=row["fresh"],
        ad=said,
        pilots=row["pilots"],
        running_jobs=row["running_jobs"],
        isolation=tuple(each for each in row["isolation"] if each),
        notices=tuple(said_of),
        jobs_there=_jobs_there(row, said) if element else None,
        entry_point=row["entry_point"],
        monitoring_database=row["monitoring_database"],
        stations=tuple(row["stations"]),
        state=health.state,
        until=health.until,
        reason=health.reason,
        said_by=health.said_by,
    )
