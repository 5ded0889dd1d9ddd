"""Wires the pilot submitter."""

import os
from pathlib import Path

from services.pilot_submitter.config import Config
from services.pilot_submitter.making import PilotMaker
from services.pilot_submitter.provisioning import Provisioning
from wms.auth.keys import load_key
from wms.dispatch.local import LocalDispatcher, agent_argv
from wms.provisioning.plan import Caps
from wms.runtime.host import Host, serve

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "WMS_SYSTEM")
"""What of our environment local pilots get."""


async def build(host: Host, config: Config) -> None:
    """Put its loops together."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    local = LocalDispatcher(Path(config.pilots.directory), agent_argv(), environment)
    maker = PilotMaker(config, load_key(Path(config.pilots.keys) / "pilots.pem", ("pilot",)))
    provisioning = Provisioning(host.db, "local", local, maker, Caps(pilots=config.pilots.most))
    host.every("provide", config.pilots.plan_every_seconds, provisioning.provide)
    host.every("follow", config.pilots.plan_every_seconds, provisioning.follow)
    host.every("tidy", 60.0, lambda: local.forget([]))


if __name__ == "__main__":
    serve("pilot_submitter", Config, build)
