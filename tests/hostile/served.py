"""Whether every partition of every consumer is served, as probes and readers tell: for the end of a run, and all the way."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import asyncpg
import msgspec

from wms.bus.probe import UNSERVED_AFTER_SECONDS
from wms.cli import health
from wms.cli.options import CommonOptions
from wms.db.database import GONE
from wms.runtime.service_health import Heartbeat, PartitionLine, partitions

LOOK_SECONDS = 1.0
QUERY = """select service, heartbeat_at > now() - interval '10 s' as alive, pid, started_at, heartbeat_at, health, now() as now
           from service_instance order by heartbeat_at"""

Window = tuple[float, float]


async def not_served(root: Path) -> list[str]:
    """Return everything that `wms status` finds wrong."""
    found = await health.look(CommonOptions(data=root))
    return [f"{part.name}: {'; '.join(part.problems) or part.note}" for part in found.parts if not part.up]


class ServedWatch:
    """Looks each second at all partitions and remembers for how long the worst was not served.

    `away` are spans of the monotonic clock in which a process was killed and not yet replaced: what was silent then is not counted.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self.away: list[Window] = []
        self.longest: dict[str, float] = {}
        self.looks = 0

    async def run(self) -> None:
        """Look until cancelled; while Postgres is away nothing can be seen."""
        while True:
            with contextlib.suppress(*GONE, asyncpg.PostgresError, TimeoutError):
                await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        connection = await asyncpg.connect(self._database, timeout=5)
        try:
            rows = await connection.fetch(QUERY)
        finally:
            await connection.close(timeout=5)
        self.looks += 1
        now = time.monotonic()
        for line in _lines(rows):
            silent = counted(now - (line.silent_seconds or 0.0), now, self.away)
            self.longest[line.consumer] = max(self.longest.get(line.consumer, 0.0), round(silent, 1))

    def faults(self) -> list[str]:
        """Return the consumers of which a partition was not served for too long."""
        return [
            f"{consumer}: a partition was not served for {seconds} s"
            for consumer, seconds in sorted(self.longest.items())
            if seconds > UNSERVED_AFTER_SECONDS
        ]


def _lines(rows: Sequence[asyncpg.Record]) -> Iterable[PartitionLine]:
    for service in {row["service"] for row in rows}:
        beats = [
            Heartbeat(
                health=msgspec.json.decode(row["health"]),
                **{name: row[name] for name in ("service", "alive", "pid", "started_at", "heartbeat_at")},
            )
            for row in rows
            if row["service"] == service
        ]
        yield from partitions(beats, rows[0]["now"])


def counted(begin: float, end: float, away: Iterable[Window]) -> float:
    """Return how many seconds of a span lie outside all of these windows."""
    inside, reached = 0.0, begin
    for first, last in sorted(away):
        seconds = min(last, end) - max(first, reached)
        if seconds > 0:
            inside += seconds
            reached = min(last, end)
    return end - begin - inside
