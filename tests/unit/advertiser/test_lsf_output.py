"""What LSF's tools print, by their documentation: queues, hosts, and which hosts a queue names."""

from pathlib import Path

import pytest

from services.advertiser.lsf import element
from services.advertiser.lsf_output import LsfQueue, hosts, minutes, names_of, queues, without_twins
from wms.errors import Rejected
from wms.glue.glue1 import GlueComputingElement
from wms.glue.quantity import UNKNOWN, UNLIMITED

DATA = Path(__file__).parents[2] / "data" / "lsf"


def queue(name: str) -> LsfQueue:
    (found,) = [each for each in queues((DATA / "bqueues.json").read_bytes()) if each.queue_name == name]
    return found


def seen(name: str, machines: str = "bhosts") -> GlueComputingElement:
    return element("glasgow", queue(name), hosts((DATA / f"{machines}.json").read_bytes()))


def test_slots_are_those_of_hosts_at_work_within_the_queues_own_limit() -> None:
    normal, short = seen("normal"), seen("short")
    assert (normal.total_cpus, normal.free_job_slots, normal.hosts.smp_size) == (28, 8, 4)
    assert (short.total_cpus, short.free_job_slots) == (6, 1)
    assert (normal.running_jobs, normal.waiting_jobs, normal.total_jobs) == (20, 12, 32)
    assert short.running_jobs == 5, "a suspended one was started"
    assert (normal.max_wall_seconds, short.max_wall_seconds) == (172_800, 1_800)
    assert seen("night").max_wall_seconds is UNLIMITED


@pytest.mark.parametrize(
    ("name", "status"),
    [("normal", "Production"), ("night", "Queueing"), ("admin", "Draining")],
)
def test_states_of_queues(name: str, status: str) -> None:
    assert seen(name).status == status
    assert element("g", LsfQueue(queue_name="q", status="Closed:Inact"), []).status == "Closed"


@pytest.mark.parametrize(
    ("status", "usable", "free"),
    [
        ("ok", True, 3),
        ("closed_Full", True, 0),
        ("closed_Busy", True, 0),
        ("closed_Excl", True, 0),
        ("closed_Adm", False, 0),
        ("closed_LIM", False, 0),
        ("closed_Wind", False, 0),
        ("unavail", False, 0),
        ("unreach", False, 0),
    ],
)
def test_hosts_by_their_states(status: str, usable: bool, free: int) -> None:  # noqa: FBT001 - a table
    record = '{"HOST_NAME":"h","STATUS":"%s","MAX":"4","NJOBS":"1"}' % status  # noqa: UP031 - it is full of braces
    (host,) = hosts(f'{{"COMMAND":"bhosts","HOSTS":1,"RECORDS":[{record}]}}'.encode())
    assert (host.usable, host.free) == (usable, free)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("all", None),
        ("", None),
        ("-", None),
        ("all ~hostD", None),
        ("hostA+3 others+1", None),
        ("batch+2 hostC", ("batch", "hostC")),
        ("batch/ batch", ("batch",)),
    ],
)
def test_the_hosts_that_a_queue_names(said: str, names: tuple[str, ...] | None) -> None:
    assert names_of(said) == names


@pytest.mark.parametrize("said", ["-m", "a;b", "$(id)", "x" * 300, " ".join(f"h{n}" for n in range(1_001))])
def test_names_that_could_be_options_or_too_many_are_refused(said: str) -> None:
    with pytest.raises(Rejected):
        names_of(said)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2880.0", 172_800),
        ("30", 1_800),
        ("0.5", 30),
        ("60.0 of hostA", 3_600),
        ("-", UNLIMITED),
        ("?", UNKNOWN),
    ],
)
def test_limits_of_time(text: str, seconds: object) -> None:
    assert minutes(text) == seconds


def test_a_limit_that_is_headed_by_its_longer_name_is_read() -> None:
    (told,) = queues(b'{"RECORDS":[{"QUEUE_NAME":"q","STATUS":"Open:Active","MAX_RUNLIMIT":"10.0"}]}')
    assert told.max_seconds == 600


def test_a_host_of_several_groups_counts_once() -> None:
    machines = hosts((DATA / "bhosts.json").read_bytes())
    assert without_twins(machines * 2) == machines


@pytest.mark.parametrize(
    "printed",
    [b"", b"{", b"{}", b'{"RECORDS":[{}]}', b'{"RECORDS":[{"QUEUE_NAME":7}]}', b"\xff", b"LSF is down"],
)
def test_what_is_no_output_of_lsf_is_refused(printed: bytes) -> None:
    for read in (queues, hosts):
        with pytest.raises(Rejected):
            read(printed)
