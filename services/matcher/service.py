"""Builds the matcher: creates its loops, which match, keep the queue index, and read ads and limits, and adds them to a host."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import numpy as np

from services.matcher import ad_parsing, ads
from services.matcher.avoided_elements import AvoidedElements
from services.matcher.config import Config
from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching
from services.matcher.pilot_allowance import AskingPilots
from services.matcher.policy_refresh import PolicyRefresh
from services.matcher.queue_stats import QueueStatsWriter
from services.matcher.run_times import RunTimes
from wms.bus.consumer import ConsumerSettings
from wms.db.database import Database
from wms.messages import ads as ad_messages
from wms.messages import match_requests
from wms.parsing.parser_pool import ParserPool
from wms.queue_index.index import QueueIndex
from wms.runtime.host import Host
from wms.runtime.process import collect_young_alone

ADS_SECONDS = 2.0
"""The greatest number of seconds until the matcher uses a new ad."""
PILOTS_SECONDS = 2.0
"""The greatest number of seconds until the matcher notices that a pilot has ended."""
IDLE_SECONDS = 60.0
"""The greatest number of seconds between two rounds of offers to idle pilots. New jobs start a round at once."""
IDLE_SHARE = 4
"""The pause after a round of offers to idle pilots, as a multiple of the round's duration. It leaves time for pilots that ask by themselves."""
RULES_SECONDS = 5.0
"""The greatest number of seconds until changed shares and limits apply, if the message about the change is lost."""


async def build(host: Host, config: Config) -> None:
    """Load waiting jobs, ads, shares and limits; then create the matcher's loops and add them to `host`, which runs them."""
    index = QueueIndex(law=config.matching.draw)
    gate = LimitGate(index, time.monotonic)
    rules = PolicyRefresh(host.db, index, gate, time.monotonic, config.usage.half_life_hours)
    feed = IndexSync(host.db, host.kafka, index, host.notices)
    elements = ads.AdSync(host.db, index)
    await feed.load()
    await elements.refresh()
    await rules.declare(config.matching.shares, config.matching.limits)
    # A full collection would hold all requests: 0.6 s for 100,000 queues. Neither index nor matching leaves cycles of objects.
    collect_young_alone()
    matching = _match(host, config, index, gate, rules)
    _keep_ads(host, elements)
    _follow_queues(host, feed)
    _offer(host, matching, feed)
    feed.on_opened = gate.open
    feed.on_rules_changed = await _follow_rules(host, index, rules)
    host.show("waiting", lambda: len(index))


def _match(host: Host, config: Config, index: QueueIndex, gate: LimitGate, rules: PolicyRefresh) -> Matching:
    """Add the consumer that answers match requests, and show its counts in the heartbeat. Return its handler."""
    pilots = AskingPilots(host.db, config.matching.offers_open)
    retry = config.matching.retry_after_seconds
    run_times = RunTimes(host.db)
    matching = Matching(
        index,
        gate,
        config.lease,
        retry,
        np.random.default_rng(),
        pilots=pilots,
        is_shared=rules.is_shared,
        likely_seconds=run_times.likely,
    )
    host.consume(
        "requests", match_requests.TOPIC, match_requests.Request, matching.handle,
        policy=ConsumerSettings(lanes=2),
        is_urgent=True,
    )  # fmt: skip
    host.every("pilots", PILOTS_SECONDS, pilots.refresh)
    host.every("run-times", 1.0, run_times.refresh)
    host.every("part", 1.0, partial(_take_part, host, index, matching))
    watch = QueueStatsWriter(host.db, index, matching.by_queue, config.matching.draw, host.instance_id)
    host.every("watch", 1.0, watch.look)
    host.show("refused", lambda: pilots.refused)
    host.show("matched", lambda: matching.matched)
    host.show("offers_open", lambda: config.matching.offers_open)
    return matching


def _offer(host: Host, matching: Matching, feed: IndexSync) -> None:
    """Add the loop that offers new jobs to idle pilots."""
    loop = host.every("idle-pilots", IDLE_SECONDS, partial(_offer_to_idle, host.db, matching))
    feed.on_entered = loop.wake


async def _offer_to_idle(db: Database, matching: Matching) -> None:
    began = time.monotonic()
    await matching.standing.offer(db, matching.offer_to_idle)
    await asyncio.sleep(IDLE_SHARE * (time.monotonic() - began))


def _keep_ads(host: Host, elements: ads.AdSync) -> None:
    """Add the consumer and the loops that store ads, and put fresh ones into the index."""
    parsers = ParserPool(ad_parsing.__name__)
    host.add(parsers)
    host.show("parsers_killed", lambda: parsers.killed)
    host.consume(
        "ads", ad_messages.TOPIC, ad_messages.AdvertiserMessage, ads.handle,
        policy=ConsumerSettings(is_fair=True),
        preparation=ad_parsing.AdParsing(parsers),
    )  # fmt: skip
    host.every("elements", ADS_SECONDS, elements.refresh)
    host.every("ads-expiry", 15.0, ads.AdExpiry(host.db).sweep)


def _follow_queues(host: Host, feed: IndexSync) -> None:
    """Add the loops that keep the index equal to the waiting jobs."""
    host.add(feed)
    host.every("reconcile", 30.0, feed.reconcile)
    host.show_probes("matcher.queue-feed", feed.inbox)
    host.show("changes_refused", lambda: feed.inbox.passed_over)


async def _follow_rules(host: Host, index: QueueIndex, rules: PolicyRefresh) -> Callable[[], Awaitable[None]]:
    """Add the loops that apply shares, limits and avoided elements. Return the function that applies a change at once."""
    avoided = AvoidedElements(host.db, index)
    await avoided.refresh()
    reading = host.every("rules", RULES_SECONDS, rules.refresh)
    host.every("standing", RULES_SECONDS, avoided.refresh)

    async def apply() -> None:
        reading.wake()
        # What an idle pilot of an element that has just been banned would take is submitted after the ban.
        await avoided.refresh()

    return apply


async def _take_part(host: Host, index: QueueIndex, matching: Matching) -> None:
    """Add the loop that watches for other matchers.

    While others run, this matcher prefers other jobs than they do, and tells them which jobs it has given out.
    """
    place, matchers = host.membership.place("matcher.requests")
    index.set_part(place, matchers)
    matching.tell_others = matchers > 1
