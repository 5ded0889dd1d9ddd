"""Ads: what a matcher's processor and Postgres spend on those of many sites, unchanged and changed, with and without limits.

`python -m bench.ads --sites 1000 --period 300 --at-once 1`. All sites advertise once in a period; `at-once` come in one poll.
Each ad is decoded, its expressions are read, it is stored, and what it lets come is counted anew. Reading from the broker is not
in it. What is in the database afterwards is held against what was said.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.classads import resource
from bench.measuring import Figures, machine, run
from bench.store import Store, store
from bench.validity import InvalidError
from services.matcher import ads as handling
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.messages import ads as ad_messages
from wms.messages.ads import Advertise
from wms.messages.wire import Codec, encode
from wms.site import ComputingElement

CODEC: Codec[ad_messages.AdvertiserMessage] = Codec(ad_messages.AdvertiserMessage)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
OWN = "CurMatches < MaxJobs && JobsMatchedSinceLastAdvertisement * 2 < MaxJobs - CurrentJobs"


def statement(site: int, turn: int, rule: str | None, running: int) -> bytes:
    """Return an ad as it is on the wire: without limits, or with a rule of the site's own, which may be empty."""
    is_limited = rule is not None
    element = ComputingElement(
        site=f"site{site:04}.example.org",
        ce=f"ce{site:04}.example.org",
        slots=1_000,
        max_cpu_time=172_800,
        setup="default",
        tags=tuple(f"tag{n}" for n in range(8)),
        max_jobs=100 if is_limited else 0,
        max_submitting_jobs=50 if is_limited else 0,
        current_jobs=running if is_limited else 0,
        rule=rule or "",
        load=float(running),
    )
    counts = {"MaxJobs": 100, "MaxSubmittingJobs": 50, "CurrentJobs": running, "CurrentSubmittingJobs": 0}
    message = Advertise(
        element=element,
        advertised_at=BEGIN + timedelta(seconds=300 * turn),
        attributes=resource(site) | (counts if is_limited else {}),
        requirements='other.Owner != "mallory"',
    )
    return encode(message)


async def hear(one: Store, payloads: Sequence[bytes], at_once: int) -> None:
    """Handle ads as a matcher does, so many in each transaction."""
    anyone = Principal(
        kind="site", owner="a", group="", vo="", rights=frozenset(), token_id="t", expires_at=4e9, site="*"
    )
    for first in range(0, len(payloads), at_once):
        batch = [Delivery(anyone, CODEC.decode(payload)) for payload in payloads[first : first + at_once]]
        async with one.db.transaction() as tx:
            await handling.handle(tx, batch)


async def spent(one: Store, payloads: Sequence[bytes], at_once: int, period: int) -> dict[str, float]:
    """Let all sites advertise once; return what one ad costs, and the part of a core at one ad a site a period."""
    sites = len(payloads)
    before, began = one.cpu_seconds(), time.process_time()
    await hear(one, payloads, at_once)
    python, postgres = time.process_time() - began, one.cpu_seconds() - before
    return {
        "matcher_us_an_ad": round(python / sites * 1e6, 1),
        "postgres_us_an_ad": round(postgres / sites * 1e6, 1),
        "matcher_percent_of_a_core": round(100 * python / period, 3),
        "postgres_percent_of_a_core": round(100 * postgres / period, 3),
    }


async def check(one: Store, sites: int, allowed: int | None) -> None:
    """Hold what is stored against what was said."""
    async with one.db.transaction() as tx:
        ads = await tx.fetchval("select count(*) from ad where expires_at > now()")
        counted = await tx.fetchval("select count(*) from limit_counter where allowed = $1", allowed or 0)
    if (ads, counted) != (sites, sites if allowed is not None else 0):
        raise InvalidError(f"{ads} ads and {counted} counts of {allowed}, of {sites} sites")


async def measure(*, sites: int, period: int, at_once: int) -> Figures:
    kinds: dict[str, tuple[str | None, int | None]] = {
        "no_limit": (None, None),
        "usual_rule": ("", 50),
        "own_rule": (OWN, 50),
    }
    found: dict[str, Any] = {}
    for kind, (rule, allowed) in kinds.items():
        async with store() as one:
            for turn, name in enumerate(("first", "unchanged", "changed")):
                running = turn // 2
                payloads = [statement(site, turn, rule, running) for site in range(sites)]
                found[f"{kind}_{name}"] = await spent(one, payloads, at_once, period)
                await check(one, sites, None if allowed is None else allowed - running // 2)
    return {"machine": machine("Postgres 18, durable"), "ads": found}


if __name__ == "__main__":
    run("ads", measure, sites=1_000, period=300, at_once=1)
