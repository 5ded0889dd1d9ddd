"""A process that runs loops until it is told to end: its command line, its signals, its exit codes.

Services with a database run in a `Host`. A process that needs none, such as the advertiser at a site, runs its loops alone.
"""

import asyncio
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog
import uvloop

from wms.bus.kafka import Kafka
from wms.errors import Rejected, Unavailable, WmsError
from wms.runtime.config import ProcessConfig, config_file, read
from wms.runtime.event_loop import MeasuredLoop
from wms.runtime.every import ENDLESS_ROUND_SECONDS, Every
from wms.runtime.loop import Loop, endless, name_late
from wms.telemetry import logs

log = structlog.get_logger()

DRAIN_SECONDS = 5.0
END_SECONDS = 20.0
"""The time limit in seconds of a process's end. Then it exits with status 1, whatever still runs in it."""

EXIT_REJECTED, EXIT_UNAVAILABLE = 2, 75

COLLECT_AFTER = 10_000, 2, 1_000
"""Thresholds of the generations of Python's garbage collector, for all services.

A collection takes up to 0.5 us for each object that it looks at, and holds the event loop. One of the two young generations looks at 40,000
objects at most. A full one looks at all that a service holds, so it is rare: once in 30 million new objects.
"""
_NEVER = 2**31 - 1

C = TypeVar("C", bound=ProcessConfig)


class LoopProcess:
    """The loops of a process, which run from `run_loops` until `stop`. They are registered before."""

    def __init__(self) -> None:
        self._loops: list[Loop] = []
        self._stop = asyncio.Event()
        self.at_end: Callable[[], object] = lambda: None
        """A function that is called when the loops begin to end, because they are told to or one has failed."""

    def add(self, loop: Loop) -> None:
        """Register a loop."""
        self._loops.append(loop)

    def every(
        self,
        name: str,
        seconds: float,
        act: Callable[[], Awaitable[bool | None]],
        *,
        endless_after: float = ENDLESS_ROUND_SECONDS,
    ) -> Every:
        """Register and return a loop that calls `act` at once and then every `seconds`. If `act` returns True, it is called again at once.

        A call that takes `endless_after` seconds is cancelled.
        """
        loop = Every(name, seconds, act, endless_after=endless_after)
        self._loops.append(loop)
        return loop

    def stop(self) -> None:
        """Ask the loops to end in order and return. It returns at once."""
        self._stop.set()

    def end_in_time(self) -> None:
        """Have the process end after `END_SECONDS` from the end of its loops, even if the event loop is blocked or a thread does not end."""
        # By a thread of the interpreter itself.
        self.at_end = partial(faulthandler.dump_traceback_later, END_SECONDS, exit=True)

    async def run_loops(self, more: Sequence[Loop] = ()) -> None:
        """Run all registered loops and `more` until `stop`, SIGTERM or SIGINT. A loop that fails or ends by itself raises an exception group."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(endless(loop), name=loop.name) for loop in (*self._loops, *more)]
            try:
                await self._stop.wait()
            finally:
                self.at_end()
                name_late(tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


class NewCluster(WmsError):  # noqa: N818 - an outcome, not a fault
    """The Kafka cluster has another id than at the start: its topics and offsets are new. The process must start again."""


async def check_cluster(kafka: Kafka) -> None:
    """Raise NewCluster if the Kafka cluster has another id than at the start, Unavailable if no broker answers."""
    cluster_id = await kafka.read_cluster_id()
    if cluster_id != kafka.cluster_id:
        raise NewCluster(f"the broker is {cluster_id} now and was {kafka.cluster_id}: beginning afresh")


def collect_young_alone() -> None:
    """Prevent full garbage collections from now on. For a process with very many objects, which leaves no old ones in cycles."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER[:2], _NEVER)


def run_process(service: str, kind: type[C], run: Callable[[C], Awaitable[None]]) -> None:
    """Run a process from the command line `python -m services.<name> --config FILE`, until `run` returns.

    `kind` is the class of the configuration. The exit code is 2 for a wrong configuration, 75 if a server is unavailable at the start or a loop
    fails, and 1 if the process did not end in time.
    """
    path = config_file(service, sys.argv[1:])
    try:
        config = read(path, kind, os.environ)
        logs.configure(service, config.log.level, as_json=config.log.json)
        gc.set_threshold(*COLLECT_AFTER)
        uvloop.run(_awaited(run(config)), loop_factory=MeasuredLoop)
    except Rejected as error:
        sys.stderr.write(f"{service}: {error}\n")
        sys.exit(EXIT_REJECTED)
    except Unavailable as error:
        sys.stderr.write(f"{service}: {error}\n")
        sys.exit(EXIT_UNAVAILABLE)
    except BaseExceptionGroup as group:
        log.exception("service failed", errors=[repr(error) for error in group.exceptions])
        sys.exit(EXIT_UNAVAILABLE)


async def _awaited(running: Awaitable[None]) -> None:
    await running
