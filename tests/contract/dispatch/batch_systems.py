"""PBS and LSF for tests, and the policy of their pilots' jobs."""

import json
from typing import Any

from tests.contract.dispatch.grounds import FakeLsfGround, FakePbsGround, over
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.port import Dispatcher, PilotRequest

POLICY = JobPolicy(vo="lhcb", owner_groups=("user", "prod"), cpu_seconds=500, hosts='other.OS == "SLC"')


async def options_of(
    ground: FakePbsGround | FakeLsfGround, dispatcher: Dispatcher, pilot: PilotRequest
) -> dict[str, Any]:
    (sent,) = await dispatcher.send([pilot])
    assert sent.state == "Submitted", sent.reason
    await over(ground, dispatcher, pilot.pilot_id)
    number = str(sent.reference).partition(".")[0]
    options: dict[str, Any] = json.loads((ground.queue / f"{number}.json").read_text())["options"]
    assert pilot.token not in str(options) + (ground.queue / f"{number}.sh").read_text()
    return options
