"""Loads the workload into DIRAC's tables; lets 1, 2, 4 and 8 of its clients match and insert, and then the best number of them."""

import asyncio
import contextlib
import csv
import getpass
import json
import secrets
import signal
import subprocess
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.measuring import Figures, median, percentile, read_line
from bench.peers.dirac import install
from bench.rounds import Kind
from bench.validity import InvalidError, Match, check
from bench.workload import OWNERS, POPULATION, SEGMENTS, SHARING, VO, Jobs, Pilot, Queue
from wms.embedded.process import free_port
from wms.embedded.server import LOOPBACK, Program

CLIENTS = (1, 2, 4, 8)
SEARCH_SECONDS = 5
"""For each number of clients, to find the best one."""
ROUND_SECONDS = 10
LOAD_SECONDS = 600
GRACE_SECONDS = 120
FAILED = "dirac: a client failed"
DATABASE = "TaskQueueDB"
ACTIONS: dict[Kind, str] = {"matching": "match", "insertion": "insert"}

Done = dict[str, Any]
"""What one client did in one round."""


@asynccontextmanager
async def start(queues: Sequence[Queue], jobs: Jobs, pilots: Sequence[Pilot]) -> AsyncIterator["Dirac"]:
    """Install it where need be, and start it with the jobs loaded."""
    await asyncio.to_thread(install.install)
    # They ask in turn, and again from the first.
    asking = pilots[:POPULATION]
    with tempfile.TemporaryDirectory(prefix="wms-bench-dirac-") as place:
        folder = Path(place)
        await asyncio.to_thread(_write, folder, queues, jobs, asking)
        async with _mariadb(folder), _clients(folder) as clients:
            (loaded,) = await _work(clients[:1], "load", LOAD_SECONDS)
            if loaded["jobs"] != len(jobs):
                raise InvalidError(f"dirac: {loaded['jobs']} of {len(jobs)} jobs were loaded")
            yield Dirac(clients, partial(check, queues, jobs, asking))


class Dirac:
    """Clients of one database. Of those that there are, as many work as together do most."""

    def __init__(self, clients: Sequence[Process], judge: Callable[[Sequence[Match]], object]) -> None:
        self._clients = clients
        self._judge = judge
        self._matches: list[Match] = []
        self._best: dict[Kind, int] = {}
        self._tried: dict[Kind, list[Figures]] = {}
        self._rounds: dict[Kind, list[Sequence[Done]]] = {kind: [] for kind in ACTIONS}

    async def warm(self, kind: Kind) -> None:
        """Find the best number of clients, which for that have all worked."""
        tried = [_figures(await self._do(kind, count, SEARCH_SECONDS)) for count in CLIENTS]
        self._tried[kind] = tried
        self._best[kind] = max(tried, key=lambda each: each["per_second"])["clients"]

    async def round(self, kind: Kind) -> float:
        done = await self._do(kind, self._best[kind], ROUND_SECONDS)
        self._rounds[kind].append(done)
        return _per_second(done)

    def figures(self) -> Figures:
        self._judge(self._matches)
        return {
            "version": "9.1.22",
            **{kind: self._figures_of(kind) for kind in ACTIONS},
        }

    def _figures_of(self, kind: Kind) -> Figures:
        rounds = self._rounds[kind]
        rates = [_per_second(done) for done in rounds]
        whole = {**_figures([each for done in rounds for each in done]), "clients": self._best[kind]}
        return {**whole, "per_second": median(rates), "all_per_second": rates, "tried": self._tried[kind]}

    async def _do(self, kind: Kind, count: int, seconds: int) -> Sequence[Done]:
        done = await _work(self._clients[:count], ACTIONS[kind], seconds)
        self._matches += [Match(*each) for one in done for each in one["done"]]
        return done


def _per_second(done: Sequence[Done]) -> float:
    worked = sum(len(each["times"]) - int(each["nothing"]) for each in done)
    seconds = max(float(each["seconds"]) for each in done)
    return round(worked / seconds, 1)


def _figures(done: Sequence[Done]) -> Figures:
    times = [1e3 * seconds for each in done for seconds in each["times"]]
    return {
        "clients": len(done),
        "per_second": _per_second(done),
        "p50_ms": percentile(times, 0.5),
        "p99_ms": percentile(times, 0.99),
        "nothing_found": sum(each["nothing"] for each in done),
        "client_cpu_us": round(1e6 * sum(each["cpu"] for each in done) / len(times)),
    }


@asynccontextmanager
async def _clients(folder: Path) -> AsyncIterator[Sequence[Process]]:
    """Start as many clients as will work at most; the first alone, since it makes the tables."""
    program = [str(install.python()), str(Path(__file__).with_name("client.py")), str(folder)]
    clients: list[Process] = []
    try:
        for n in range(max(CLIENTS)):
            client = await asyncio.create_subprocess_exec(
                *program, str(n), str(max(CLIENTS)), env=install.environment(), limit=2**26,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            clients.append(client)
            async with asyncio.timeout(GRACE_SECONDS):
                await read_line(client, FAILED)
        yield clients
    finally:
        for client in clients:
            with contextlib.suppress(ProcessLookupError):
                client.kill()
            await client.wait()


async def _work(clients: Sequence[Process], action: str, seconds: int) -> Sequence[Done]:
    """Let these clients work, beginning together, and return what each did."""
    for client in clients:
        assert client.stdin is not None
        client.stdin.write(f"{action} {seconds}\n".encode())
    async with asyncio.timeout(seconds + GRACE_SECONDS):
        lines = await asyncio.gather(*(read_line(client, FAILED) for client in clients))
    return [json.loads(line) for line in lines]


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
