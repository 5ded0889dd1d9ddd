"""What Slurm's tools print, in the versions there are: recorded from a real 22.05; by what is told of 24.11, the other."""

import json
from pathlib import Path

import pytest

from services.advertiser.config import SlurmQueues
from services.advertiser.queues import wanted
from services.advertiser.slurm import queue
from services.advertiser.slurm_output import (
    Load,
    Machines,
    Partition,
    duration,
    loads,
    machines,
    partitions,
)
from wms.errors import Rejected, Unavailable
from wms.glue.glue1 import GlueComputingElement
from wms.glue.quantity import UNKNOWN, UNLIMITED

DATA = Path(__file__).parents[2] / "data" / "slurm"
VERSIONS = ["22.05", "24.11"]


def nodes(version: str, partition: str = "main") -> list[Machines]:
    """Return the nodes of a partition: one idle but drained, one with 2 of 8 processors taken, one with all."""
    found = machines((DATA / f"sinfo-{version}.json").read_bytes())
    return [each for each in found if each.partition == partition]


def limits() -> dict[str, Partition]:
    return {each.name: each for each in partitions((DATA / "partitions.txt").read_bytes())}


def main(version: str, load: Load | None = None) -> GlueComputingElement:
    return queue("glasgow", limits()["main"], nodes(version), load or Load())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drained_node_has_no_slots(version: str):
    element = main(version)
    assert (element.total_cpus, element.free_job_slots) == (16, 6)
    assert (element.hosts.smp_size, element.hosts.memory_mb) == (8, 16_000)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_partition_sees_all_of_its_nodes(version: str):
    assert [sum(each.cpus for each in nodes(version, name)) for name in ("main", "short")] == [24, 24]


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_counted_by_partition_and_arrays_by_their_tasks(version: str):
    counted = loads((DATA / f"squeue-{version}.json").read_bytes())
    assert counted["main"] == Load(running=2, waiting=24, running_of_users=2, waiting_of_users=24)
    assert (counted["short"].running, counted["short"].waiting) == (1, 20)


def test_the_jobs_of_users_are_told_apart():
    counted = loads((DATA / "squeue-24.11.json").read_bytes(), ["alice"])
    assert (counted["main"].running, counted["main"].running_of_users) == (2, 1)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [("1-20", 20), ("1,3,5-9", 7), ("0-9:2", 5), ("1-100%4", 100), ("7", 1), ("1-20,...", 20), ("?", 1)],
)
def test_the_tasks_of_an_array(tasks: str, expected: int):
    record = {"partition": "main", "job_state": "PENDING", "array_task_string": tasks}
    assert loads(json.dumps({"jobs": [record]}).encode())["main"].waiting == expected


@pytest.mark.parametrize("state", ["DOWN", "drained", "idle*", "MAINT", "INVALID_REG"])
def test_nodes_that_start_no_jobs(state: str):
    record = {"name": "n", "state": "idle", "state_flags": [state], "cpus": 8, "partitions": ["main"]}
    assert not machines(json.dumps({"nodes": [record]}).encode())[0].usable


def test_limits_of_partitions_are_seconds():
    assert {name: each.max_seconds for name, each in limits().items()} == {"main": 604_800, "short": 1_800}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7-00:00:00", 604_800),
        ("00:30:00", 1_800),
        ("30:00", 1_800),
        ("1-02:03:04", 93_784),
        ("UNLIMITED", UNLIMITED),
        ("infinite", UNLIMITED),
        ("NONE", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_durations(text: str, seconds: object):
    assert duration(text) == seconds


def test_features_are_told_that_every_usable_node_has():
    assert main("24.11").hosts.applications == ("avx2", "ib")
    assert main("22.05").hosts.applications == ()


@pytest.mark.parametrize(
    ("state", "status"),
    [("UP", "Production"), ("DOWN", "Queueing"), ("DRAIN", "Draining"), ("INACTIVE", "Closed")],
)
def test_states_of_partitions(state: str, status: str):
    partition = Partition(name="main", state=state, max_seconds=60)
    assert queue("glasgow", partition, nodes("22.05"), Load()).status == status


@pytest.mark.parametrize(
    "printed", [b"", b"{", b"{}", b'{"nodes": 7}', b'{"nodes": [{"cpus": "x"}]}', b"\xff\xfe"]
)
def test_what_is_no_output_of_sinfo_is_refused(printed: bytes):
    with pytest.raises(Rejected):
        machines(printed)


def test_queues_are_advertised_by_name_and_one_that_says_too_little_is_not():
    endless = queue("g", Partition(name="endless", state="UP", max_seconds=UNLIMITED), nodes("22.05"), Load())
    queues = [main("22.05"), endless]
    settings = SlurmQueues(site="glasgow", names={"main": "ce-main"}, slots_per_pilot=4)
    [seen] = wanted(settings, queues, dispatcher="slurm")
    assert (seen.offer.ce, seen.offer.dispatcher, seen.offer.slots) == ("ce-main", "slurm", 16)
    assert (seen.offer.max_cpu_time, seen.offer.memory_mb) == (604_800, 8_000)
    assert wanted(SlurmQueues(site="glasgow", queues=["other"]), queues, dispatcher="slurm") == []
    told = SlurmQueues(site="glasgow", queues=["endless"], max_cpu_time=3_600)
    assert [each.offer.max_cpu_time for each in wanted(told, queues, dispatcher="slurm")] == [3_600]


def test_a_controller_that_does_not_answer_has_no_empty_queue() -> None:
    """As Slurm 22.05 prints it, with exit code 0."""
    failed = {
        "description": "Failed while looking for jobs",
        "error_number": -1,
        "error": "Unspecified error",
    }
    with pytest.raises(Unavailable, match="squeue --json: Failed while looking for jobs"):
        loads(json.dumps({"errors": [failed], "jobs": []}).encode(), [])
    with pytest.raises(Unavailable, match="sinfo --json: Unspecified error"):
        list(machines(b'{"errors": [{"error": "Unspecified error", "errno": -1}], "nodes": []}'))
