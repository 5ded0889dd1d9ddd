"""Checks task queues and matches, row by row in Python, by the auditor's own rules."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import asyncpg

from wms.audit.report import Check
from wms.audit.rules import EXPRESSIONS, KEY_ORDER, asked, misfit, queue_key, without_case

SHOWN = 20
IDENTITY = ("owner", "owner_group", "vo")
CREDENTIALS = ("certificate_subject", "fqans")
"""The fields of requirements that come from the owner's token, not from the job description."""

QUEUES = "select tq_id, key, owner, owner_group, vo, cpu_segment, requirements from task_queue"

# Jobs of one description and queue are judged once; most descriptions differ only in what no queue looks at.
GROUPED = """
select j.tq_id, min(j.job_id) as job_id, sum(j.jobs)::bigint as jobs, d.asked
from (
    select tq_id, description_id, job_id, 1 as jobs from job
    union all
    select s.tq_id, s.description_id, b.first, b.last - b.first + 1 from block b join sweep s on s.first = b.sweep
) j
join (
    select description_id, (select jsonb_object_agg(key, value) from jsonb_each(body::jsonb)
                            where key = any (array['setup', 'cpu_time', 'memory_mb', 'max_memory_mb',
                                'disk_mb', 'sites', 'banned_sites', 'grid_ces', 'grid_middlewares', 'stations', 'platforms',
                                'tags', 'container', 'network', 'processors', 'min_processors', 'max_processors', 'whole_node', 'gpus', 'job_type', 'pilot_types', 'submit_pools',
                                'requirements', 'rank', 'attributes'])) as asked
    from description
) d using (description_id)
group by j.tq_id, d.asked
"""

# What a job asked for before it was edited is not known any more.
MATCHED = """
select j.tq_id, a.site, a.ce, p.vo, min(a.job_id) as job_id, count(*) as attempts
from attempt a join job j using (job_id) left join pilot p on p.pilot_id = a.pilot_id
left join (
    select job_id, max(epoch) as epoch from job_move where reason = 'EDITED_BY_USER' group by job_id
) e on e.job_id = a.job_id
where e.epoch is null or a.epoch > e.epoch
group by j.tq_id, a.site, a.ce, p.vo
"""


async def checks(connection: asyncpg.Connection, segments: tuple[int, ...]) -> list[Check]:
    """Return three checks: of task queues' keys, of the queues in which jobs are, and of the sites and elements where jobs were run.

    `segments` are the system's CPU segments: upper bounds of CPU time in seconds.
    """
    queues = {row["tq_id"]: row for row in await connection.fetch(QUEUES)}
    required = {tq_id: _parsed(row["requirements"]) for tq_id, row in queues.items()}
    grouped = await connection.fetch(GROUPED)
    matched = await connection.fetch(MATCHED)
    return [
        _check("a task queue's key is that of its requirements", 8, len(queues), _keys(queues, required)),
        _check(
            "jobs are in the queue of what they ask",
            8,
            sum(row["jobs"] for row in grouped),
            _misplaced(grouped, required, segments),
        ),
        _check(
            "a job is at no place that it may not be",
            9,
            sum(row["attempts"] for row in matched),
            _misfits(matched, required),
        ),
    ]


def _check(name: str, invariant: int, checked: int, violations: Iterable[str]) -> Check:
    return Check(name=name, invariant=invariant, checked=checked, violations=tuple(violations)[:SHOWN])


def _parsed(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def _keys(queues: Mapping[int, asyncpg.Record], required: Mapping[int, Mapping[str, Any]]) -> Iterable[str]:
    for tq_id, row in queues.items():
        columns = {name: row[name] for name in (*IDENTITY, "cpu_segment")}
        said = {name: required[tq_id].get(name) for name in columns}
        if queue_key(required[tq_id]) != row["key"]:
            yield f"task queue {tq_id}: its key is not that of {required[tq_id]}"
        elif said != columns:
            yield f"task queue {tq_id}: its columns say {columns}, its requirements {said}"


def _misplaced(
    grouped: Iterable[asyncpg.Record],
    required: Mapping[int, Mapping[str, Any]],
    segments: tuple[int, ...],
) -> Iterable[str]:
    for row in grouped:
        wanted = asked(_parsed(row["asked"] or "{}"), segments)
        queue = without_case(required.get(row["tq_id"], {}))
        said = [name for name in KEY_ORDER if name not in IDENTITY and name not in CREDENTIALS]
        offered = {name: queue[name] for name in said if queue.get(name)}
        # How expressions are written down is not judged here, but that there are some or none.
        offered |= {name: True for name in EXPRESSIONS if name in offered}
        # A brokered job's queue is its own, by a tag that nobody asks for.
        offered["tags"] = [tag for tag in offered.get("tags", ()) if tag != f"job:{row['job_id']}"]
        offered = {name: value for name, value in offered.items() if value}
        # Earlier the largest segment held all longer jobs, too.
        if offered.get("cpu_segment") == segments[-1] < wanted["cpu_segment"]:
            wanted["cpu_segment"] = segments[-1]
        if wanted != offered:
            yield f"job {row['job_id']} and {row['jobs'] - 1} more ask for {wanted}, queue {row['tq_id']} is of {offered}"


def _misfits(matched: Iterable[asyncpg.Record], required: Mapping[int, Mapping[str, Any]]) -> Iterable[str]:
    for row in matched:
        why = misfit(required.get(row["tq_id"], {"vo": ""}), row["site"], row["ce"], row["vo"])
        if why:
            yield f"job {row['job_id']} and {row['attempts'] - 1} more attempts: {why}"
