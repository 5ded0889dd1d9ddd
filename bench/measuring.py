"""What benchmarks share in being measured: the machine they ran on, a system to run against, medians, one JSON object."""

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import psutil
import uvloop

from bench.validity import InvalidError
from wms.cli.session import quiet
from wms.embedded.server import Server
from wms.embedded.supervisor import Supervisor
from wms.embedded.system import System

Figures = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
"""What `docs/performance.md` is written from."""
BOUND_SECONDS = 3_600.0
"""No benchmark takes longer."""


def machine(postgres_version: str) -> Figures:
    """Return what the figures depend on."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        # Above the number of cores, others used the machine too.
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "postgres": postgres_version,
    }


def median(values: Sequence[float]) -> float:
    """Return the median, to four significant digits."""
    return float(f"{statistics.median(values):.4g}")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed, to four significant digits."""
    ordered = sorted(values)
    return float(f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:.4g}")


async def read_line(process: asyncio.subprocess.Process, fault: str) -> bytes:
    """Return the next line that a process prints; InvalidError, with the fault as its text, when it ended instead."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise InvalidError(fault)
    return line


class _Trusting(Supervisor):
    """Has a matcher that trusts its pilots: those of benchmarks take offers and accept none.

    No offer runs out meanwhile: what came back of one measurement would be work beside another.
    """

    def __init__(self, data_dir: Path, environment: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(data_dir)
        self._environment = environment

    async def add(self, server: Server) -> None:
        server.environment |= self._environment.get(server.name, {})
        if server.name == "matcher":
            server.environment["WMS_MATCHING__OFFERS_OPEN"] = str(10**9)
            server.environment["WMS_LEASE__OFFER_SECONDS"] = "3600"
        await super().add(server)


@asynccontextmanager
async def system(
    environment: Mapping[str, Mapping[str, str]] | None = None, **options: Any
) -> AsyncIterator[System]:
    """Bring up a system in a directory of its own, as durable as one in earnest, and take it down again.

    `environment` has variables of services, by their names.
    """
    with tempfile.TemporaryDirectory(prefix="wms-bench-") as place:
        made = System(Path(place), log_level="warning", **options)
        made.supervisor = _Trusting(made.layout.root, environment or {})
        async with made as running:
            yield running


async def postgres_version(running: System) -> str:
    """Return the version of the system's Postgres."""
    assert running.facts is not None
    connection = await asyncpg.connect(running.facts.postgres_url)
    try:
        version = connection.get_server_version()
    finally:
        await connection.close()
    return f"{version.major}.{version.minor}"


class Cpu:
    """Processor seconds by program, between two moments: where the time goes."""

    def __init__(self, running: System) -> None:
        self._names = [name for name in running.state().children if name != "postgres"]
        self._running = running
        self._before = self._look()

    def used(self) -> dict[str, float]:
        """Return the seconds used since then."""
        now = self._look()
        return {name: round(now[name] - self._before.get(name, 0.0), 2) for name in now}

    def _look(self) -> dict[str, float]:
        own = psutil.Process().cpu_times()
        found = {"benchmark": own.user + own.system}
        for name in self._names:
            pid = self._running.supervisor.pid_of(name)
            if pid is not None:
                times = psutil.Process(pid).cpu_times()
                found[name] = times.user + times.system
        pid = self._running.supervisor.pid_of("postgres")
        if pid is not None:
            found["postgres"] = sum(_cpu_of(each) for each in psutil.Process(pid).children(recursive=True))
        return found


def _cpu_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def run(name: str, measure: Callable[..., Awaitable[Figures]], **defaults: int | str) -> None:
    """Measure with the parameters of the command line, and print the figures as one JSON object.

    Ends with 1 and says why when what was measured is wrong.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}")
    for parameter, value in defaults.items():
        parser.add_argument(f"--{parameter.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--json", action="store_true", help="on one line")
    parser.add_argument(
        "--keep", nargs="?", const=name, default="", metavar="NAME",
        help=f"keep the result in bench/results/NAME.json, for docs/performance.md (default: {name})",
    )  # fmt: skip
    parameters = vars(parser.parse_args())
    compact, kept = parameters.pop("json"), parameters.pop("keep")
    quiet()

    async def bounded() -> Figures:
        bound = asyncio.timeout(BOUND_SECONDS)
        try:
            async with bound:
                return await measure(**parameters)
        except TimeoutError:
            if not bound.expired():
                raise
            raise SystemExit(f"STOPPED: not done after {BOUND_SECONDS:g} s") from None

    try:
        figures = uvloop.run(bounded())
    except InvalidError as invalid:
        raise SystemExit(f"INVALID: {invalid}") from invalid
    whole = msgspec.json.encode({"benchmark": name, "parameters": parameters, **figures})
    if kept:
        (RESULTS / f"{kept}.json").write_bytes(msgspec.json.format(whole) + b"\n")
    sys.stdout.write((whole if compact else msgspec.json.format(whole)).decode() + "\n")
    sys.stdout.flush()
