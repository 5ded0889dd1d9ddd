"""Housekeeping: empty queues and sandboxes that nobody refers to go, and nothing else."""

from pathlib import Path

from services.job_manager.config import QueueSettings, SandboxStoreSettings
from services.job_manager.maintenance.housekeeping import Housekeeping
from tests.services.world import World
from wms.transfer.store import open_store


def housekeeping(the_world: World, url: str = "", *, kept: float = 60) -> Housekeeping:
    sandboxes = SandboxStoreSettings(url=url, kept_unreferenced_seconds=kept)
    return Housekeeping(the_world.db, QueueSettings(removed_when_empty_seconds=60), sandboxes)


async def queues(the_world: World) -> int:
    return len(await the_world.sql("select from task_queue where removed_at is null"))


async def test_a_queue_that_was_empty_for_as_long_as_configured_goes(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    await the_world.submitted(memory_mb=5)
    keeper = housekeeping(the_world)
    await the_world.order("kill", job_id)
    await keeper.remove_empty_queues()
    assert await queues(the_world) == 2, "it became empty just now"
    await the_world.sql("update task_queue set empty_since = empty_since - interval '61 s'")
    await keeper.remove_empty_queues()
    assert await queues(the_world) == 1


async def store(tmp_path: Path, *contents: bytes) -> tuple[str, list[str]]:
    url = f"file://{tmp_path / 'store'}"
    return url, [(await open_store(url).put(each)).sha256 for each in contents]


async def there(url: str, *digests: str) -> set[str]:
    return {digest for digest in digests if await open_store(url).exists(digest)}


async def test_sandboxes_that_no_job_refers_to_go_once_they_are_old(the_world: World, tmp_path: Path) -> None:
    url, (used, unused) = await store(tmp_path, b"used", b"unused")
    await the_world.submitted(input_sandbox=[{"sha256": used, "size": 4}])
    await housekeeping(the_world, url).collect_sandboxes()
    assert await there(url, used, unused) == {used, unused}, "who brought it may be about to submit"
    await housekeeping(the_world, url, kept=0.001).collect_sandboxes()
    assert await there(url, used, unused) == {used}


async def test_without_a_store_nothing_is_collected(the_world: World) -> None:
    await housekeeping(the_world).collect_sandboxes()
