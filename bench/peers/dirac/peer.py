"""Loads the workload into DIRAC's tables and lets 1, 2, 4 and 8 of its clients match and insert: the best number counts."""

import asyncio
import contextlib
import csv
import getpass
import json
import secrets
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.measuring import Figures, percentile, read_line
from bench.peers.dirac import install
from bench.validity import InvalidError, Match, check
from bench.workload import OWNERS, SEGMENTS, SHARING, VO, Jobs, Pilot, Queue
from wms.embedded.process import free_port
from wms.embedded.server import LOOPBACK, Program

CLIENTS = (1, 2, 4, 8)
MATCH_SECONDS = 20
INSERT_SECONDS = 8
LOAD_SECONDS = 600
DATABASE = "TaskQueueDB"


async def measure(queues: Sequence[Queue], jobs: Jobs, pilots: Sequence[Pilot]) -> Figures:
    """Install it where need be, load, measure, check."""
    await asyncio.to_thread(install.install)
    with tempfile.TemporaryDirectory(prefix="wms-bench-dirac-") as place:
        folder = Path(place)
        async with _mariadb(folder):
            await asyncio.to_thread(_write, folder, queues, jobs, pilots)
            (loaded,) = await _clients("load", folder, 1, 0)
            if loaded["jobs"] != len(jobs):
                raise InvalidError(f"dirac: {loaded['jobs']} of {len(jobs)} jobs were loaded")
            matching, matches = [], []
            for clients in CLIENTS:
                done = await _clients("match", folder, clients, MATCH_SECONDS)
                matches += [Match(*each) for one in done for each in one["done"]]
                matching.append(_figures(done))
                # Those who come next ask anew; who got a job is gone.
            check(queues, jobs, pilots, matches)
            insertion = [
                _figures(await _clients("insert", folder, clients, INSERT_SECONDS)) for clients in CLIENTS
            ]
    return {
        "version": "9.1.22",
        "matches_per_second": max(each["per_second"] for each in matching),
        "insertions_per_second": max(each["per_second"] for each in insertion),
        "matching": matching,
        "insertion": insertion,
    }


def _figures(done: Sequence[dict[str, Any]]) -> Figures:
    times = [1e3 * seconds for each in done for seconds in each["times"]]
    worked = len(times) - sum(each["nothing"] for each in done)
    return {
        "clients": len(done),
        "per_second": round(worked / max(each["seconds"] for each in done), 1),
        "p50_ms": percentile(times, 0.5),
        "p99_ms": percentile(times, 0.99),
        "nothing_found": sum(each["nothing"] for each in done),
        "client_cpu_us": round(1e6 * sum(each["cpu"] for each in done) / len(times)),
    }


async def _clients(action: str, folder: Path, count: int, seconds: int) -> list[dict[str, Any]]:
    """Run so many clients at once, which begin together, and return what they did."""
    program = [str(install.python()), str(Path(__file__).with_name("client.py")), action, str(folder)]
    processes = [
        await asyncio.create_subprocess_exec(
            *program, str(n), str(seconds), str(count), env=install.environment(), limit=2**26,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for n in range(count)
    ]  # fmt: skip
    try:
        async with asyncio.timeout(LOAD_SECONDS if action == "load" else 120 + seconds):
            if action != "load":
                await asyncio.gather(*(read_line(each, "dirac: a client failed") for each in processes))
                for each in processes:
                    assert each.stdin is not None
                    each.stdin.write(b"go\n")
            return [
                json.loads(line)
                for line in await asyncio.gather(
                    *(read_line(each, "dirac: a client failed") for each in processes)
                )
            ]
    finally:
        for each in processes:
            with contextlib.suppress(ProcessLookupError):
                each.kill()
            await each.wait()


# --- MariaDB --------------------------------------------------------------------------------------


@asynccontextmanager
async def _mariadb(folder: Path) -> AsyncIterator[None]:
    """Run a MariaDB on loopback that is durable: the log is on disk at every commit."""
    port, password = free_port(), secrets.token_urlsafe(16)
    data = folder / "mariadb"
    root = install.prefix()
    user = getpass.getuser()
    make = [
        str(root / "bin" / "mariadb-install-db"), "--no-defaults", f"--basedir={root}", f"--datadir={data}",
        f"--user={user}", "--auth-root-authentication-method=normal", "--skip-test-db",
    ]  # fmt: skip
    made = await asyncio.to_thread(
        subprocess.run, make, env=install.environment(), capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise SystemExit(f"mariadb-install-db failed:\n{(made.stdout + made.stderr)[-2_000:]}")
    (folder / "init.sql").write_text(
        f"create database if not exists {DATABASE};\n"
        f"create user if not exists dirac@'%' identified by '{password}';\n"
        f"grant all on {DATABASE}.* to dirac@'%';\n"
    )
    access = {"host": LOOPBACK, "port": port, "user": "dirac", "passwd": password, "db": DATABASE}
    (folder / "access.json").write_text(json.dumps(access))
    (folder / "dirac.cfg").write_text(_configuration(port, password))
    options = {
        "datadir": data,
        "socket": folder / "s.sock",
        "pid-file": folder / "pid",
        "port": port,
        "bind-address": LOOPBACK,
        "basedir": root,
        "lc-messages-dir": root / "share" / "mysql",
        "plugin-dir": root / "lib" / "mysql" / "plugin",
        "init-file": folder / "init.sql",
        "user": user,
        "local-infile": 1,
        "skip-log-bin": 1,
        "skip-name-resolve": 1,
        "innodb-buffer-pool-size": "2G",
        "innodb-log-file-size": "1G",
        "innodb-flush-log-at-trx-commit": 1,
        "innodb-flush-method": "O_DIRECT",
        "performance-schema": "OFF",
    }
    argv = [
        str(root / "sbin" / "mariadbd"),
        "--no-defaults",
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    pid = folder / "pid"
    server = Program(
        folder / "server",
        name="mariadb",
        argv=argv,
        env={"LD_LIBRARY_PATH": str(install.LIBRARIES)},
        ready=pid.exists,
        ready_within=60,
    )
    server.stop_signals, server.stop_grace = (signal.SIGTERM, signal.SIGKILL), 30.0
    async with server:
        yield


def _configuration(port: int, password: str) -> str:
    return _section(
        {
            "DIRAC": {
                "Setup": "bench",
                "VirtualOrganization": VO,
                "Configuration": {"Name": "bench"},
            },
            "Systems": {
                "Databases": {"User": "dirac", "Password": password, "Host": LOOPBACK, "Port": port},
                "WorkloadManagement": {"Databases": {DATABASE: {"DBName": DATABASE}}},
            },
            "Operations": {
                "Defaults": {
                    "JobScheduling": {
                        "taskQueueCPUTimeIntervals": ", ".join(str(seconds) for seconds, _ in SEGMENTS)
                    }
                }
            },
            "Registry": {
                "DefaultGroup": "lhcb_user",
                "Groups": {group: _group(group) for _, group in OWNERS},
            },
        }
    )


def _group(group: str) -> dict[str, Any]:
    return {
        "Users": ", ".join(owner for owner, of in OWNERS if of == group),
        "Properties": "NormalUser, JobSharing" if group in SHARING else "NormalUser",
        "VO": VO,
    }


def _section(values: dict[str, Any], depth: int = 0) -> str:
    indent = "  " * depth
    return "".join(
        f"{indent}{name}\n{indent}{{\n{_section(value, depth + 1)}{indent}}}\n"
        if isinstance(value, dict)
        else f"{indent}{name} = {value}\n"
        for name, value in values.items()
    )


# --- the workload in files ------------------------------------------------------------------------


def _write(folder: Path, queues: Sequence[Queue], jobs: Jobs, pilots: Sequence[Pilot]) -> None:
    (folder / "pilots.json").write_bytes(msgspec.json.encode(pilots))
    (folder / "queues.json").write_bytes(msgspec.json.encode(queues))
    numbered = list(enumerate(queues, start=1))
    _table(
        folder / "tq_TaskQueues.csv",
        ((n, each.owner, each.group, VO, each.cpu_time, each.priority, 1) for n, each in numbered),
    )
    sets = {
        "Sites": "sites",
        "BannedSites": "banned",
        "Platforms": "platforms",
        "JobTypes": "job_types",
        "Tags": "tags",
    }
    for name, attribute in sets.items():
        values = ((n, value) for n, each in numbered for value in getattr(each, attribute))
        _table(folder / f"tq_TQTo{name}.csv", values)
    waiting = zip(jobs.queue.tolist(), jobs.priority.tolist(), strict=True)
    _table(
        folder / "tq_Jobs.csv",
        ((queue + 1, n, priority, float(priority)) for n, (queue, priority) in enumerate(waiting, start=1)),
    )


def _table(path: Path, rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
