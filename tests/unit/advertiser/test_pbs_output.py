"""What Torque's and PBS Pro's tools print, by their documentation: queues, nodes, and which nodes a queue has."""

from pathlib import Path

import pytest

from services.advertiser.config import PbsQueues
from services.advertiser.pbs import elements
from services.advertiser.pbs_output import PbsQueue, duration, memory_mb, nodes, nodes_of, queues
from services.advertiser.queues import wanted
from wms.errors import Rejected
from wms.glue.glue1 import GlueComputingElement
from wms.glue.quantity import UNKNOWN

DATA = Path(__file__).parents[2] / "data" / "pbs"


def printed(flavour: str, what: str) -> str:
    return (DATA / f"{flavour}-{what}.txt").read_text()


def read(flavour: str) -> dict[str, GlueComputingElement]:
    found = elements("glasgow", printed(flavour, "queues"), printed(flavour, "nodes"))
    return {each.name: each for each in found}


def test_torque_queues_have_the_nodes_with_the_property_that_they_need() -> None:
    found = read("torque")
    assert set(found) == {"long", "short", "old"}, "a route is no queue that runs jobs"
    slots = {name: (each.total_cpus, each.free_job_slots) for name, each in found.items()}
    assert slots == {"long": (16, 5), "short": (32, 0), "old": (32, 16)}
    long = found["long"]
    assert (long.running_jobs, long.waiting_jobs, long.total_jobs) == (3, 5, 8), "completed jobs are no more"
    assert (long.max_wall_seconds, long.hosts.memory_mb, long.hosts.smp_size) == (172_800, 16_000, 8)
    assert [found[name].status for name in ("long", "short", "old")] == ["Production", "Production", "Closed"]


def test_pbs_pro_queues_have_nodes_of_their_own_or_those_with_their_word() -> None:
    found = read("pbspro")
    slots = {name: (each.total_cpus, each.free_job_slots) for name, each in found.items()}
    assert slots == {"workq": (64, 36), "gpu": (64, 0), "express": (32, 32)}
    workq = found["workq"]
    assert (workq.running_jobs, workq.waiting_jobs) == (2, 1)
    assert (workq.hosts.memory_mb, workq.max_wall_seconds) == (32_768, 86_400)
    assert found["gpu"].status == "Queueing"


def test_lines_that_were_cut_are_put_together() -> None:
    (queue,) = [each for each in queues(printed("torque", "queues")) if each.name == "long"]
    assert queue.waiting == 5
    assert queue.needs == (("", "sl7"),)
    text = "Queue: a\n    queue_type = Execution\n    comment = see\n\tx = 1\n    \tenabled = True\n    started = True\n"
    (queue,) = queues(text)
    assert (queue.enabled, queue.started) == (False, True), "what goes on is no attribute"


def test_queues_as_slurms_own_qstat_prints_them() -> None:
    said = "\tqueue_type = Execution\n\tresources_default.nodes = 4\n\tenabled = {0}\n\tstarted = {0}\n\n"
    first, second = queues(
        "".join(f"Queue:\t{name}\n{said.format(up)}" for name, up in (("short", "yes"), ("down", "no")))
    )
    assert (first.name, first.enabled, first.started) == ("short", True, True)
    assert (second.name, second.enabled, second.started) == ("down", False, False)


@pytest.mark.parametrize(
    ("jobs", "free"),
    [("", 8), ("0/1.s", 7), ("0/1.s, 0/2.s", 7), ("0-3,6/1[2].s,7/3.s", 2), ("0-99999999/1.s", 7), ("?", 8)],
)
def test_slots_that_jobs_have_are_not_free(jobs: str, free: int) -> None:
    (node,) = nodes(f"n\n     state = free\n     np = 8\n     jobs = {jobs}\n")
    assert node.free == free


@pytest.mark.parametrize(
    ("state", "usable", "free"),
    [
        ("free", True, 4),
        ("job-busy", True, 0),
        ("job-exclusive", True, 0),
        ("busy", True, 0),
        ("free,job-sharing", True, 4),
        ("offline", False, 0),
        ("down,job-exclusive", False, 0),
        ("state-unknown,down", False, 0),
    ],
)
def test_nodes_by_their_states(state: str, usable: bool, free: int) -> None:  # noqa: FBT001 - a table
    (node,) = nodes(f"n\n     state = {state}\n     resources_available.ncpus = 4\n")
    assert (node.usable, node.free) == (usable, free)


def test_a_node_without_slots_or_state_counts_for_nothing() -> None:
    (node,) = nodes("n\n     ntype = PBS\n")
    assert (node.usable, node.slots, node.free) == (False, 0, 0)


def test_a_need_that_no_node_tells_of_excludes_none() -> None:
    known = nodes(printed("pbspro", "nodes"))
    needing = PbsQueue(name="q", enabled=True, started=True, needs=(("fabric", "ib"),))
    assert [each.name for each in nodes_of(needing, known)] == ["node0", "node1", "node2", "node3"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("48:00:00", 172_800),
        ("30:00", 1_800),
        ("90", 90),
        ("", UNKNOWN),
        ("1:2:3:4", UNKNOWN),
        ("-1", UNKNOWN),
    ],
)
def test_durations(text: str, seconds: object) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "mb"), [("1048576kb", 1_024), ("2gb", 2_048), ("1tb", 1 << 20), ("131072kw", 1_024), ("much", 0)]
)
def test_sizes(text: str, mb: int) -> None:
    assert memory_mb(text) == mb


@pytest.mark.parametrize("text", ["garbage here\n", "     state = free\n", "\x00\n", "Server: x\n"])
def test_what_is_no_output_of_pbs_is_refused(text: str) -> None:
    for read_it in (queues, nodes):
        with pytest.raises(Rejected, match="no line of PBS's"):
            read_it(text)
    assert not queues("")
    assert not nodes("\n")


def test_queues_are_advertised_by_name_and_one_that_says_too_little_is_not() -> None:
    found = list(read("torque").values())
    settings = PbsQueues(site="glasgow", names={"long": "ce-long"}, slots_per_pilot=4)
    seen = {each.offer.ce: each.offer for each in wanted(settings, found, dispatcher="pbs")}
    assert set(seen) == {"ce-long", "short"}, "old says no walltime"
    offer = seen["ce-long"]
    assert (offer.dispatcher, offer.slots, offer.max_cpu_time, offer.memory_mb) == ("pbs", 16, 172_800, 8_000)
    assert (offer.current_jobs, offer.current_submitting_jobs) == (8, 5)
