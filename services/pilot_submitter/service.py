"""Builds the pilot submitter: creates its loops, which plan, send, follow and cancel pilots, and adds them to a host."""

import os
from functools import partial
from pathlib import Path

from services.pilot_submitter.ce_health import HealthJudge
from services.pilot_submitter.config import Config
from services.pilot_submitter.configured_endpoints import configured_endpoints_of
from services.pilot_submitter.direct_jobs import DirectJobs
from services.pilot_submitter.element_calls import PATIENCE_SECONDS, ElementCalls
from services.pilot_submitter.ended_pilots import ENDED_SECONDS, revoke_ended
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.placement_execution import Placing
from services.pilot_submitter.placement_orders import PlacementOrders
from services.pilot_submitter.placement_watch import PlacementWatch
from services.pilot_submitter.provisioning import Provisioning
from services.pilot_submitter.secret_exchanges import SecretExchanges
from services.pilot_submitter.stray_pilots import StrayPilots
from services.pilot_submitter.token_renewal import TokenRenewer
from wms.auth.keys import load_key
from wms.messages import broker, pilot_exchange
from wms.provisioning.plan import PilotCaps
from wms.runtime.host import Host

SLOW_ELEMENT_SECONDS = 1_800.0
"""How long one round of a loop that calls elements may take, in seconds. After that it is cancelled, and the loop goes on.

To send many pilots to a slow element takes minutes.
"""
TAKING_SECONDS = 5.0
"""How long a plan of pilots waits for elements to take theirs, in seconds. Then the next plans leave out those that still do."""


async def build(host: Host, config: Config) -> None:
    """Create the loops of the pilot submitter from its configuration and add them to `host`, which runs them."""
    endpoints = configured_endpoints_of(config, os.environ)
    signing_key = load_key(Path(config.pilots.keys) / "pilots.pem", ("pilot",))
    factory = PilotFactory(config, signing_key, host.orders)
    tracking = PilotTracking(
        host.db,
        endpoints,
        silent_seconds=config.pilots.silent_seconds,
        given_up_seconds=config.pilots.given_up_seconds,
        calls=ElementCalls(PATIENCE_SECONDS),
    )
    most = PilotCaps(pilots=config.pilots.most)
    taking = ElementCalls(TAKING_SECONDS)
    provisioning = Provisioning(
        host.db, endpoints, factory, most, tracking, choice=config.pilots.choice, calls=taking
    )
    _send_and_follow(host, config, provisioning, tracking)
    host.every("ask mapping scripts", 0.5, endpoints.ask_scripts)
    host.every("health", 2.0, HealthJudge(host.db, endpoints, config.health).look)
    placing = Placing(
        host.db, endpoints, factory, tracking, host.instance_id, calls=ElementCalls(PATIENCE_SECONDS)
    )
    loop = host.every("place", 0.5, placing.send, endless_after=SLOW_ELEMENT_SECONDS)
    orders = PlacementOrders(loop.wake)
    host.consume("placements", broker.PLACEMENTS_TOPIC, broker.PlacementsOrdered, orders.handle)
    watch = PlacementWatch(host.db, endpoints, calls=ElementCalls(PATIENCE_SECONDS))
    host.every("watch placements", 1.0, watch.look)
    host.every("clear placements", 2.0, watch.clear, endless_after=SLOW_ELEMENT_SECONDS)
    direct = DirectJobs(
        host.db,
        host.kafka,
        endpoints,
        factory,
        host.instance_id,
        sandboxes=config.sandboxes,
        directory=Path(f"{config.pilots.directory}-direct"),
        calls=ElementCalls(PATIENCE_SECONDS),
    )
    host.every("direct jobs", 1.0, direct.look, endless_after=SLOW_ELEMENT_SECONDS)
    strays = StrayPilots(host.db, endpoints, lingering_seconds=config.pilots.lingering_seconds)
    host.every("clear", 5.0, strays.clear, endless_after=SLOW_ELEMENT_SECONDS)
    renewing = TokenRenewer(host.db, factory)
    host.every("renew tokens", renewing.every_seconds, renewing.renew)
    exchanges = SecretExchanges(factory, host.orders)
    host.consume("exchanges", pilot_exchange.TOPIC, pilot_exchange.SecretExchange, exchanges.handle)
    host.every("revoke ended", ENDED_SECONDS, partial(revoke_ended, host.db, factory.token_seconds))


def _send_and_follow(host: Host, config: Config, provisioning: Provisioning, tracking: PilotTracking) -> None:
    seconds = config.pilots.plan_every_seconds
    host.every("provide", seconds, provisioning.provide, endless_after=SLOW_ELEMENT_SECONDS)
    host.every("follow", seconds, tracking.follow, endless_after=SLOW_ELEMENT_SECONDS)
    host.every("fetch outputs", 5.0, tracking.fetch_outputs, endless_after=SLOW_ELEMENT_SECONDS)
