"""The matcher: its loops, and what they stand on."""

import gc
import time
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from services.matcher import ads
from services.matcher.avoided_elements import AvoidedElements
from services.matcher.config import Config
from services.matcher.index_sync import IndexSync
from services.matcher.limit_gate import LimitGate
from services.matcher.matching import Matching
from services.matcher.pilot_allowance import AskingPilots
from services.matcher.policy_refresh import PolicyRefresh
from services.matcher.queue_parsing import QueueParsing
from services.matcher.queue_stats import QueueStatsWriter
from wms.bus.consumer import ConsumerPolicy
from wms.messages import ads as ad_messages
from wms.messages import requests
from wms.queue_index.index import QueueIndex
from wms.runtime.every import Every
from wms.runtime.host import Host
from wms.runtime.newcomers import Newcomers

ADS_SECONDS = 2.0
"""How late what an element advertises anew is matched by at most."""
PILOTS_SECONDS = 2.0
"""How late it is known at most that a pilot has ended."""
RULES_SECONDS = 5.0
"""How late rules are applied at most, should the word of their change be lost."""


async def build(host: Host, config: Config) -> None:
    """Load what waits, the ads and the rules; then put the loops together."""
    index = QueueIndex(law=config.matching.draw)
    gate = LimitGate(index, time.monotonic)
    rules = PolicyRefresh(host.db, index, gate, time.monotonic, config.usage.half_life_hours)
    newcomers = Newcomers(host.slices)
    feed = IndexSync(host.db, host.kafka, index, host.notices, newcomers)
    elements = ads.Elements(host.db, index)
    await feed.load()
    await elements.refresh()
    await rules.declare(config.matching.shares, config.matching.limits)
    # What was loaded lives long: the collector need not look at it again and again.
    gc.freeze()
    _match(host, config, index, gate, rules)
    _keep_ads(host, elements)
    _follow_queues(host, feed, newcomers)
    feed.on_opened = gate.open
    feed.on_rules_changed = partial(_wake, await _follow_rules(host, index, rules))
    host.show("waiting", lambda: len(index))


def _match(host: Host, config: Config, index: QueueIndex, gate: LimitGate, rules: PolicyRefresh) -> None:
    """Answer match requests, and tell what was matched."""
    pilots = AskingPilots(host.db, config.matching.offers_open)
    retry = config.matching.retry_after_seconds
    matching = Matching(
        index, gate, config.lease, retry, np.random.default_rng(), pilots=pilots, is_shared=rules.is_shared
    )
    host.consume(
        "requests", requests.TOPIC, requests.Request, matching.handle,
        policy=ConsumerPolicy(lanes=2),
        is_urgent=True,
    )  # fmt: skip
    host.every("pilots", PILOTS_SECONDS, pilots.refresh)
    host.every("part", 1.0, partial(_take_part, host, index, matching))
    watch = QueueStatsWriter(host.db, index, matching.by_queue, config.matching.draw, host.instance_id)
    host.every("watch", 1.0, watch.look)
    host.show("refused", lambda: pilots.refused)
    host.show("matched", lambda: matching.matched)
    host.show("offers_open", lambda: config.matching.offers_open)


def _keep_ads(host: Host, elements: ads.Elements) -> None:
    """Store the ads of elements, and match by those that are fresh."""
    host.consume("ads", ad_messages.TOPIC, ad_messages.Ad, ads.handle)
    host.every("elements", ADS_SECONDS, elements.refresh)
    host.every("ads-expiry", 15.0, ads.Expiry(host.db).sweep)


def _follow_queues(host: Host, feed: IndexSync, newcomers: Newcomers) -> None:
    """Keep the index as the queues are."""
    host.add(feed)
    host.add(QueueParsing(feed, newcomers))
    host.every("reconcile", 30.0, feed.reconcile)
    host.show_probes("matcher.queue-feed", feed.inbox)
    host.show("queues_put_off", lambda: len(newcomers))
    host.show("changes_refused", lambda: feed.inbox.passed_over)


async def _follow_rules(host: Host, index: QueueIndex, rules: PolicyRefresh) -> Sequence[Every]:
    """Keep shares, limits and avoided elements as they are; return the loops to be woken when one changes."""
    avoided = AvoidedElements(host.db, index)
    await avoided.refresh()
    return (
        host.every("rules", RULES_SECONDS, rules.refresh),
        host.every("standing", RULES_SECONDS, avoided.refresh),
    )


def _wake(loops: Iterable[Every]) -> None:
    for each in loops:
        each.wake()


async def _take_part(host: Host, index: QueueIndex, matching: Matching) -> None:
    """Prefer other jobs than the other matchers do, and tell them which are gone, while there are any."""
    place, matchers = host.membership.place("matcher.requests")
    index.set_part(place, matchers)
    matching.tell_others = matchers > 1
