"""A Postgres as durable as one in earnest, with a workload's jobs waiting in it."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec
import psutil

from bench.workload import VO, Jobs, Queue
from wms.db import task_queue
from wms.db.database import Database
from wms.db.migrate import migrate
from wms.embedded.postgres import Postgres
from wms.jobdesc.description import JobDescription
from wms.matching.grouping import Requirements, key
from wms.matching.requirements import requirements_of

LOADING = """
    create temporary table loading (
        job_id bigint, queue integer, priority real, tq_id bigint, owner text, owner_group text
    ) on commit drop
"""
FILL = (
    "create temporary table kind on commit drop as select * from unnest($1::integer[], $2::jsonb[]) as k(queue, body)",
    """
    insert into description (description_id, body)
    select l.job_id, (k.body || jsonb_build_object('arguments', jsonb_build_array('--seed', l.job_id::text)))::json
    from loading l join kind k using (queue)
    """,
    """
    insert into job (job_id, description_id, tq_id, owner, owner_group, vo, name, user_priority, max_attempts, state,
                     event_seq, reason)
    select l.job_id, l.job_id, l.tq_id, l.owner, l.owner_group, $1, 'simulate', l.priority, 3, 'Waiting', 2, 'QUEUED'
    from loading l
    """,
)
CHANGE = """
    update task_queue q set key = n.key, requirements = n.requirements::jsonb
    from unnest($1::bytea[], $2::bytea[], $3::text[]) as n(was, key, requirements) where q.key = n.was
"""
AT_ONCE = 1_000_000
"""Jobs in one transaction of the load."""


class Store:
    """The server and a database with the schema."""

    def __init__(self, server: Postgres, db: Database) -> None:
        self._server = server
        self.url = server.url
        self.db = db

    def cpu_seconds(self) -> float:
        """Return what the server has used so far, those of its processes that have ended included."""
        pid = self._server.pid
        assert pid is not None
        root = psutil.Process(pid)
        total = 0.0
        for process in (root, *root.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    async def size(self) -> int:
        """Return the bytes of the database."""
        async with self.db.transaction() as tx:
            return int(await tx.fetchval("select pg_database_size(current_database())"))

    async def version(self) -> str:
        connection = await asyncpg.connect(self.url)
        try:
            version = connection.get_server_version()
        finally:
            await connection.close()
        return f"{version.major}.{version.minor}"

    async def load(self, queues: Sequence[Queue], jobs: Jobs) -> None:
        """Let the jobs wait: job number n under the id n, each with a description of its own."""
        tq_ids = await self.make_queues(queues)
        connection = await asyncpg.connect(self.url, command_timeout=1_800)
        try:
            for first in range(0, len(jobs), AT_ONCE):
                await _load_part(
                    connection, queues, tq_ids, jobs, range(first, min(first + AT_ONCE, len(jobs)))
                )
            await connection.execute(f"select setval('job_id_seq', {len(jobs)})")
            await connection.execute("vacuum (analyze)")
            await connection.execute("checkpoint")
        finally:
            await connection.close()

    async def make_queues(self, queues: Sequence[Queue]) -> list[int]:
        """Make the task queues as submissions would, and return their ids."""
        wanted = required(queues)
        async with self.db.transaction() as tx:
            found = await task_queue.find_or_make(tx, {key(each): each for each in wanted})
        return [found[key(each)] for each in wanted]

    async def change_queues(self, before: Sequence[Queue], after: Sequence[Queue]) -> None:
        """Let the jobs of queues have been submitted otherwise, for matchers that read them from now on."""
        were, are = required(before), required(after)
        async with self.db.transaction() as tx:
            await tx.execute(
                CHANGE,
                [key(each) for each in were],
                [key(each) for each in are],
                [msgspec.json.encode(each).decode() for each in are],
            )


def required(queues: Sequence[Queue]) -> list[Requirements]:
    """Return what the jobs of each queue ask for, as submissions would."""
    segments = tuple(sorted({each.cpu_time for each in queues}))
    return [requirements_of(describe(each), each.owner, each.group, VO, segments) for each in queues]


async def _load_part(
    connection: asyncpg.Connection, queues: Sequence[Queue], tq_ids: Sequence[int], jobs: Jobs, numbers: range
) -> None:
    kinds, describing, inserting = FILL
    bodies = [msgspec.json.encode(describe(each)).decode() for each in queues]
    async with connection.transaction():
        await connection.execute(LOADING)
        await connection.copy_records_to_table("loading", records=_records(queues, tq_ids, jobs, numbers))
        await connection.execute(kinds, list(range(len(queues))), bodies)
        await connection.execute("analyze loading")
        await connection.execute(describing)
        await connection.execute(inserting, VO)


def _records(
    queues: Sequence[Queue], tq_ids: Sequence[int], jobs: Jobs, numbers: range
) -> Iterator[tuple[int, int, float, int, str, str]]:
    part = slice(numbers.start, numbers.stop)
    for n, queue, priority in zip(
        numbers, jobs.queue[part].tolist(), jobs.priority[part].tolist(), strict=True
    ):
        yield n + 1, queue, priority, tq_ids[queue], queues[queue].owner, queues[queue].group


def describe(queue: Queue, priority: int = 5) -> JobDescription:
    """Return what a job of the queue was submitted as."""
    (job_type,) = queue.job_types
    return JobDescription(
        executable="simulate",
        arguments=("--detector", "2026", "--events", "1000", "--output", "events.root"),
        environment={"RUN": "4711", "CONDITIONS": "sim-2026-03"},
        cpu_time=queue.cpu_time,
        priority=priority,
        sites=queue.sites,
        banned_sites=queue.banned,
        platforms=queue.platforms,
        tags=queue.tags,
        job_type=job_type,
        requirements=queue.requirements,
        rank=queue.rank,
        attributes=dict(queue.attributes),
        output_sandbox=("*.log", "summary.xml"),
    )


@asynccontextmanager
async def store(connections: int = 8, settings: Mapping[str, str] | None = None) -> AsyncIterator[Store]:
    """Start a server in a directory of its own, apply the migrations, and leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="wms-bench-") as place:
        async with Postgres(Path(place), settings=settings) as server:
            await migrate(server.url)
            db = await Database.connect(server.url, size=connections, application="bench")
            try:
                yield Store(server, db)
            finally:
                await db.close()
