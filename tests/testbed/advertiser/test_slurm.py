"""The provider of Slurm asks a real one, and sees what happens there."""

from pathlib import Path

import pytest

from services.advertiser.config import SiteStatement, SlurmQueues
from services.advertiser.slurm import Slurm
from services.advertiser.statement import state
from tests.middleware import Sites
from tests.testbed.advertiser.providers import queue, slurm
from tests.waiting import eventually
from wms.embedded.process import free_port
from wms.errors import Unavailable
from wms.glue.quantity import known

pytestmark = pytest.mark.testbed


async def test_the_partitions_of_a_cluster_are_elements(testbed: Sites) -> None:
    told = testbed.told["alpha"]
    seen = {each.offer.ce: each for each in await slurm(testbed, vos=["lhcb"]).read()}
    assert seen.keys() == set(told["partitions"])
    main = seen["main"]
    assert main.offer.fault() is None
    assert main.offer.slots == len(told["nodes"]) * told["cores_per_node"]
    assert known(main.glue.hosts.memory_mb) == told["memory_mb_per_node"]
    assert main.glue.status == "Production"
    assert main.offer.max_cpu_time > seen["short"].offer.max_cpu_time > 0
    assert state(main, SiteStatement(vos=["lhcb"])).attributes["GlueCEAccessControlBaseRule"] == ["VO:lhcb"]


async def test_jobs_of_a_cluster_are_seen_to_wait_and_run_and_take_slots(testbed: Sites) -> None:
    provider = slurm(testbed)
    before = (await queue(provider)).glue
    told = ["sbatch", "--parsable", "-p", "main", "-t", "5", "-o", "/dev/null"]
    running = testbed.run("alpha", *told, "-n", "2", "--wrap", "sleep 300").strip()
    waiting = testbed.run("alpha", *told, "-H", "--array", "1-7", "--wrap", "true").strip()
    try:

        async def seen() -> bool:
            now = (await queue(provider)).glue
            return (
                _number(now.running_jobs) == _number(before.running_jobs) + 1
                and _number(now.waiting_jobs) == _number(before.waiting_jobs) + 7
                and _number(now.free_job_slots) <= _number(before.free_job_slots) - 2
            )

        await eventually(seen, 30)
        assert (await queue(slurm(testbed, users=["nobody-at-all"]))).offer.current_jobs == 0
    finally:
        testbed.run("alpha", "scancel", running, waiting)


async def test_a_drained_node_takes_its_slots_along(testbed: Sites) -> None:
    provider = slurm(testbed, "beta")
    told = testbed.told["beta"]
    node = testbed.run("beta", "sinfo", "-h", "-N", "-p", "main", "-o", "%N").split()[0]
    testbed.run("beta", "scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    try:
        assert (await queue(provider)).offer.slots == (len(told["nodes"]) - 1) * told["cores_per_node"]
    finally:
        testbed.run("beta", "scontrol", "update", f"NodeName={node}", "State=RESUME")

    async def all_of_them() -> bool:
        slots: int = len(told["nodes"]) * told["cores_per_node"]
        return (await queue(provider)).offer.slots == slots

    await eventually(all_of_them, 30)


async def test_a_partition_that_drains_offers_no_slots(testbed: Sites) -> None:
    testbed.run("beta", "scontrol", "update", "PartitionName=short", "State=DRAIN")
    try:
        short = await queue(slurm(testbed, "beta"), "short")
        assert (short.glue.status, short.offer.slots) == ("Draining", 0)
    finally:
        testbed.run("beta", "scontrol", "update", "PartitionName=short", "State=UP")


async def test_a_cluster_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    configuration = tmp_path / "slurm.conf"
    # Without the file, Slurm's tools look for it for a minute before they say so.
    configuration.write_text(f"ClusterName=nowhere\nSlurmctldHost=localhost\nSlurmctldPort={free_port()}\n")
    with pytest.raises(Unavailable):
        await Slurm(SlurmQueues(site="s", configuration=str(configuration))).read()
    with pytest.raises(Unavailable, match="No such file"):
        await Slurm(SlurmQueues(site="s", directory=str(tmp_path))).read()


def _number(quantity: object) -> int:
    assert isinstance(quantity, int)
    return quantity
