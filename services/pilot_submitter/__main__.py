"""Wires the pilot submitter."""

import os
from pathlib import Path

from services import fast_start
from services.pilot_submitter.ce_health import HealthJudge
from services.pilot_submitter.config import Config
from services.pilot_submitter.configured_endpoints import doors_of
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from services.pilot_submitter.stray_pilots import StrayPilots
from services.pilot_submitter.token_renewal import TokenRenewer
from wms.auth.keys import load_key
from wms.provisioning.plan import Caps
from wms.runtime.host import Host, serve

SLOW_ELEMENT_SECONDS = 1_800.0
"""What speaks with elements may take so long: to send many pilots to a slow one takes minutes."""


async def build(host: Host, config: Config) -> None:
    """Put its loops together."""
    doors = doors_of(config, os.environ)
    maker = PilotFactory(config, load_key(Path(config.pilots.keys) / "pilots.pem", ("pilot",)), host.orders)
    following = PilotTracking(
        host.db,
        doors,
        silent_seconds=config.pilots.silent_seconds,
        given_up_seconds=config.pilots.given_up_seconds,
    )
    clearing = StrayPilots(host.db, doors, lingering_seconds=config.pilots.lingering_seconds)
    provisioning = Provisioning(
        host.db, doors, maker, Caps(pilots=config.pilots.most), following, choice=config.pilots.choice
    )
    host.every(
        "provide", config.pilots.plan_every_seconds, provisioning.provide, endless_after=SLOW_ELEMENT_SECONDS
    )
    host.every("ask mapping scripts", 0.5, doors.ask_scripts)
    host.every("health", 2.0, HealthJudge(host.db, doors, config.health).look)
    host.every(
        "follow", config.pilots.plan_every_seconds, following.follow, endless_after=SLOW_ELEMENT_SECONDS
    )
    host.every("clear", 5.0, clearing.clear, endless_after=SLOW_ELEMENT_SECONDS)
    renewing = TokenRenewer(host.db, maker)
    host.every("renew tokens", renewing.every_seconds, renewing.renew)
    host.every("fetch outputs", 5.0, following.fetch_outputs, endless_after=SLOW_ELEMENT_SECONDS)


if __name__ == "__main__":
    fast_start.started()
    serve("pilot_submitter", Config, build)
