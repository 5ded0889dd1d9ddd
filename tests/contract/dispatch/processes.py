"""Pilots as processes of this machine."""

import os
import sys
from pathlib import Path

from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest
from wms.ids import PilotId

WAITS = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); signal.pause()"


def order(name: str) -> PilotRequest:
    return PilotRequest(
        pilot_id=PilotId(name), site="S", ce="c", slots=1, config="a = 1\n", token="t0ken-of-a-pilot"
    )


def running(program: str, directory: Path) -> LocalDispatcher:
    return LocalDispatcher(directory, [sys.executable, "-c", program], {"PATH": os.environ["PATH"]})


async def ended(dispatcher: LocalDispatcher) -> bool:
    return not await dispatcher.alive()
