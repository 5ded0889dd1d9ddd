"""Payloads that attack what runs beside them: each is contained, its job says so, and nothing of it stays behind."""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from services.job_agent.payload.container import COUNTS_TASKS
from services.job_agent.payload.limit_enforcement import PROCESSES, TASKS_PER_PROCESS
from tests.hostile import payloads
from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.target import Target
from tests.services.job_agent.payload.processes import CAN_ISOLATE, alive, new_tag
from tests.waiting import eventually
from wms.client import Client, JobDescription, select
from wms.messages.replies import JobDetail

pytestmark = pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")

OWNER = "mallory"
SECRET = "the-neighbour's-secret"
KEPT_BYTES = 100_000
PATHS_MOST = 150


def attack(program: str, *arguments: str, **description: object) -> JobDescription:
    """Return the job of a hostile program; none is tried twice."""
    asked: dict[str, object] = {"cpu_time": 600, "max_attempts": 1} | description
    return JobDescription(executable=sys.executable, arguments=("-c", program, *arguments), **asked)  # type: ignore[arg-type]


async def ended(client: Client, jobs: Mapping[str, JobDescription]) -> dict[str, JobDetail]:
    """Submit jobs, wait until they have ended, and return what is told of each by its name."""
    numbers = [(await client.submit(job)).ids[0][0] for job in jobs.values()]
    await client.wait(select(numbers), timeout=PATIENCE_SECONDS)
    return dict(zip(jobs, [await client.show(each) for each in numbers], strict=True))


def reasons(found: Mapping[str, JobDetail]) -> dict[str, str | None]:
    """Return the reason of each job's only attempt."""
    assert {len(each.attempts) for each in found.values()} == {1}
    return {name: each.attempts[0].reason for name, each in found.items()}


async def nothing_is_left(target: Target, found: Mapping[str, JobDetail], tag: str) -> None:
    """Wait until no job has a directory; no process with the tag may be there even now."""
    assert alive(tag) == []
    numbers = [each.job.job_id for each in found.values()]
    await eventually(lambda: not [path for each in numbers for path in _directories(target, each)])


async def test_what_a_payload_reaches_for_is_not_there(
    target: Target, innocent: Innocent, tmp_path: Path
) -> None:
    evidence = f"wms-evidence-{new_tag()}"
    async with (
        Client.connect(target.settings("neighbour")) as neighbour,
        Client.connect(target.settings(OWNER)) as client,
        innocent.beside(),
    ):
        own = JobDescription(executable="/bin/sh", arguments=("-c", f'echo "{SECRET}" > result; sleep 10000'))
        theirs = (await neighbour.submit(own)).ids[0][0]
        kept: list[Path] = await eventually(lambda: _directories(target, theirs, "work/result"))
        paths, pids, places = _secrets(target), _pids(target), _places(target)
        found = await ended(
            client,
            {
                "read": attack(
                    payloads.READ, *map(str, [*kept, *paths]), output_sandbox=("link-*", "link-*/*")
                ),
                "kill": attack(payloads.KILL, *map(str, pids)),
                "write": attack(payloads.WRITE, evidence, *map(str, places)),
            },
        )
        reached = {name: await _printed(client, each, tmp_path / name) for name, each in found.items()}
        assert await neighbour.counts(select([theirs])) == {"Running": 1}
        await neighbour.kill(select([theirs]))
    assert len(paths) > 10
    assert reached == dict.fromkeys(found, "\n")
    assert reasons(found) == dict.fromkeys(found, "EXIT_CODE")
    assert {each.attempts[0].exit_code for each in found.values()} == {payloads.NOTHING}
    assert {path.name for path in (tmp_path / "read").iterdir()} <= {"stdout.txt", "stderr.txt"}, (
        "links are not followed"
    )
    assert [place for place in places if (place / evidence).exists()] == []
    assert [pid for pid in pids if not psutil.pid_exists(pid)] == []
    await nothing_is_left(target, found, evidence)


async def test_what_a_payload_fills_or_leaves_behind_is_bounded_and_named(
    target: Target, innocent: Innocent, tmp_path: Path
) -> None:
    tag = new_tag()
    async with Client.connect(target.settings(OWNER)) as client, innocent.beside():
        found = await ended(
            client,
            {
                "leave behind": attack(payloads.LEAVE_BEHIND, tag),
                "fill disk": attack(payloads.FILL_DISK, tag, disk_mb=40),
                "fill memory": attack(payloads.FILL_MEMORY, tag, memory_mb=150),
                "ignore signals": attack(payloads.IGNORE_SIGNALS, tag, wall_time=2, grace_time=1),
                "flood": attack(payloads.FLOOD, tag, wall_time=2, stdout_limit=KEPT_BYTES, stderr_limit=KEPT_BYTES),
            },
        )  # fmt: skip
        await client.output(found["flood"].job.job_id, tmp_path / "flood")
    assert reasons(found) == {
        "leave behind": "DONE",
        "fill disk": "DISK_LIMIT",
        "fill memory": "MEMORY_LIMIT",
        "ignore signals": "WALL_LIMIT",
        "flood": "WALL_LIMIT",
    }
    sizes = [each.stat().st_size for each in (tmp_path / "flood").iterdir()]
    assert len(sizes) == 2
    assert max(sizes) < 1.1 * KEPT_BYTES
    await nothing_is_left(target, found, tag)


async def test_a_payload_that_forks_without_end_is_ended_before_the_node_is_full(
    target: Target, innocent: Innocent
) -> None:
    tag, before = new_tag(), _tasks()
    most = [before]
    async with Client.connect(target.settings(OWNER)) as client, innocent.beside():
        watching = asyncio.create_task(_watch_tasks(most))
        found = await ended(client, {"fork": attack(payloads.FORK, tag)})
        watching.cancel()
    assert reasons(found) == {"fork": "PROCESS_LIMIT"}
    assert "processes of the 1,000 that it may have" in (found["fork"].attempts[0].reason_text or "")
    if COUNTS_TASKS:
        assert max(most) - before < PROCESSES * TASKS_PER_PROCESS + 1_000
    await nothing_is_left(target, found, tag)


async def test_a_payload_without_a_network_reaches_nobody(
    target: Target, innocent: Innocent, tmp_path: Path
) -> None:
    abstract = f"wms-{new_tag()}"
    addresses = sorted(
        {
            each.address
            for all_ in psutil.net_if_addrs().values()
            for each in all_
            if each.family == socket.AF_INET
        }
    )
    with socket.create_server(("", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0{abstract}")
        named.listen()
        arguments = (
            str(server.getsockname()[1]),
            abstract,
            *(each for each in addresses if each != "127.0.0.1"),
        )
        async with Client.connect(target.settings(OWNER)) as client, innocent.beside():
            found = await ended(
                client,
                {
                    network: attack(payloads.NETWORK, *arguments, network=network)
                    for network in ("node", "none")
                },
            )
            printed = {name: await _printed(client, each, tmp_path / name) for name, each in found.items()}
    assert {"loopback", "a server's abstract socket"} <= set(printed["node"].splitlines()), (
        "the attack is one"
    )
    assert printed["none"] == "\n"
    assert found["none"].attempts[0].exit_code == payloads.NOTHING


def _tasks() -> int:
    """Return how many processes and threads the machine has."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


async def _watch_tasks(most: list[int]) -> None:
    while True:
        most.append(_tasks())
        await asyncio.sleep(0.02)


def _secrets(target: Target) -> list[Path]:
    """Return keys, tokens, configurations, sockets and sandboxes of the system, and their directories."""
    root = target.root
    assert target.system.broker is not None
    names = ("keys", "tokens", "services", "sandboxes", "pilots")
    below = [path for name in names for path in (root / name).rglob("*") if "jobs" not in path.parts]
    sockets = [path for path in root.rglob("*") if path.is_socket()]
    return [root, root / "client.toml", *(root / name for name in names), *sockets, *below][:PATHS_MOST]


def _pids(target: Target) -> list[int]:
    """Return the processes of the system: agents, shepherds and services."""
    children = target.system.state().children.values()
    agents = [
        each.pid
        for each in psutil.process_iter(["cmdline"])
        if str(target.root / "pilots") in " ".join(each.info["cmdline"] or ())
    ]
    assert agents
    shepherds = [child.pid for agent in agents for child in psutil.Process(agent).children()]
    return [os.getpid(), *(each.pid for each in children if each.pid is not None), *agents, *shepherds]


def _places(target: Target) -> list[Path]:
    pilots = list((target.root / "pilots").iterdir())
    system = map(
        Path,
        (
            "/",
            "/etc",
            "/usr/bin",
            "/usr/local/bin",
            "/var/lib",
            "/var/spool/cron",
            "/run",
            "/dev",
            "/root",
            "/home",
        ),
    )
    return [*system, target.root, target.root / "pilots", *pilots, *(each / "jobs" for each in pilots)]


def _directories(target: Target, job_id: int, below: str = "") -> list[Path]:
    return list((target.root / "pilots").glob(f"*/own/jobs/{job_id}.*/{below}".rstrip("/")))


async def _printed(client: Client, job: JobDetail, directory: Path) -> str:
    await client.output(job.job.job_id, directory)
    return (directory / "stdout.txt").read_text()
