"""The job manager as it is put together: each of its loops does a round, and nothing that waits is touched."""

from pathlib import Path

import msgspec

from services.job_manager.config import Config
from services.job_manager.service import build
from tests.services.hosting import do_each_once, hosted, settings, shown
from tests.services.world import World


async def test_each_loop_does_a_round(the_world: World, kafka: str, tmp_path: Path) -> None:
    (job_id,) = await the_world.submitted(1)
    config = msgspec.convert(settings(tmp_path, the_world.url, kafka), Config)
    async with hosted("job_manager", config, build) as host:
        done = await do_each_once(host)
        assert shown(host)["probes"].keys() == {
            f"job_manager.{each}" for each in ("commands", "queries", "reports")
        }
    assert done >= {
        "waiting-limits", "canaries", "leases", "dependencies", "idle-dependencies", "broker-orders", "reasons", "task-queues",
        "sandboxes", "partitions", "retention", "dead-letters",
    }  # fmt: skip
    assert await the_world.state(job_id) == "Waiting"
