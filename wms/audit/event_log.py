"""Checks the events about jobs on Kafka against the database: what an event tells must be in a job's history.

The topic is read before the database, so that all its events were committed by then. Kafka may delete old events. So a change in the database without
an event is counted, but is no violation.
"""

import json
from typing import Any

import asyncpg
import msgspec
from aiokafka import AIOKafkaConsumer

from wms.audit.report import Check
from wms.bus.unix_socket import servers
from wms.db.columns import dense

TOPIC = "wms.job.events"
QUIET_SECONDS = 1.5
"""The topic counts as read to its end after this many seconds without a new message."""
SHOWN = 20

UNTRUE = """
select format('job %s, move %s was told as %s --> %s, epoch %s (%s); it was %s --> %s, epoch %s (%s)', t.job_id, t.seq,
              t.event, t.state, t.epoch, t.reason, e.event, e.state, e.epoch, e.reason)
from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::integer[], $6::text[])
    as t(job_id, seq, event, state, epoch, reason)
left join job_event e using (job_id, seq)
where (t.event, t.state, t.epoch, t.reason) is distinct from (e.event, e.state, e.epoch, e.reason)
limit 20
"""

UNBORN = """
select format('jobs %s to %s of %s were told to wait; %s of them ever did', t.first, t.first + t.count - 1, t.owner, n.found)
from unnest($1::bigint[], $2::integer[], $3::text[]) as t(first, count, owner)
cross join lateral (
    select count(*) + (
        select coalesce(sum(least(b.last, t.first + t.count - 1) - greatest(b.first, t.first) + 1), 0)
        from block b join sweep s on s.first = b.sweep
        where b.last >= t.first and b.first < t.first + t.count and s.owner = t.owner and b.history @> '[{"seq": 2, "state": "Waiting"}]'
    ) as found
    from job j join job_event e on e.job_id = j.job_id and e.seq = 2 and e.state = 'Waiting'
    where j.job_id between t.first and t.first + t.count - 1 and j.owner = t.owner
) n
where n.found <> t.count
limit 20
"""


UNTRUE_OF_SWEEPS = """
select format('jobs %s to %s, move %s were told as %s --> %s (%s); %s of them made it', t.first, t.first + t.count - 1, t.seq,
              t.event, t.state, t.reason, n.found)
from unnest($1::bigint[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::text[])
    as t(first, count, seq, event, state, reason)
cross join lateral (
    select count(*) + (
        select coalesce(sum(least(b.last, t.first + t.count - 1) - greatest(b.first, t.first) + 1), 0)
        from block b
        where b.last >= t.first and b.first < t.first + t.count
          and b.history @> jsonb_build_array(jsonb_build_object('seq', t.seq, 'event', t.event, 'state', t.state,
                                                                'reason', t.reason))
    ) as found
    from job_event e
    where e.job_id between t.first and t.first + t.count - 1 and e.seq = t.seq
      and (e.event, e.state, e.reason) = (t.event, t.state, t.reason)
) n
where n.found <> t.count
limit 20
"""


class LoggedHistory(msgspec.Struct):
    """The events about jobs that Kafka holds.

    `moves` are changes of state, as (job, number, event, state, epoch, reason). `births` are new jobs, as (first id, count, owner).
    `together` are changes of several jobs of an array, as (first id, count, number, event, state, reason).
    """

    moves: list[tuple[int, int, str, str, int, str]] = []
    births: list[tuple[int, int, str]] = []
    together: list[tuple[int, int, int, str, str, str]] = []


async def read(bootstrap: str) -> LoggedHistory:
    """Read all events about jobs from Kafka at `bootstrap`: HOST:PORT or `unix:PATH`. Raise the errors of aiokafka if no broker answers."""
    consumer = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=servers(bootstrap), auto_offset_reset="earliest", enable_auto_commit=False
    )
    told = LoggedHistory()
    await consumer.start()
    try:
        while batch := await consumer.getmany(timeout_ms=int(QUIET_SECONDS * 1000), max_records=10_000):
            for records in batch.values():
                for record in records:
                    _note(told, json.loads(record.value))
    finally:
        await consumer.stop()
    return told


def _note(told: LoggedHistory, fact: dict[str, Any]) -> None:
    """Add the events about jobs in one message to `told`. Other messages, such as `wait-reason`, are ignored."""
    if fact["type"] == "jobs-queued":
        told.births.append((fact["first"], fact["count"], fact["owner"]))
    elif fact["type"] == "jobs-moved":
        for event in fact["events"]:
            _note(told, event)
    elif fact["type"] == "sweep-moved":
        reason = fact.get("reason", "")
        move = (fact["first"], fact["count"], fact["seq"], fact["event"], fact["state"], reason)
        told.together.append(move)
    elif fact["type"] == "job-event":
        reason = fact.get("reason", "")
        told.moves.append((fact["job_id"], fact["seq"], fact["event"], fact["state"], fact["epoch"], reason))


async def checks(connection: asyncpg.Connection, told: LoggedHistory) -> tuple[Check, str]:
    """Check the events that Kafka holds against the history in the database.

    Return the check, and a sentence with the number of state changes in these events.
    """
    found: list[str] = []
    if told.moves:
        found += [row[0] for row in await connection.fetch(UNTRUE, *dense(told.moves))]
    if told.births:
        found += [row[0] for row in await connection.fetch(UNBORN, *dense(told.births))]
    if told.together:
        found += [row[0] for row in await connection.fetch(UNTRUE_OF_SWEEPS, *dense(told.together))]
    check = Check(
        name="what the event log tells has happened",
        invariant=11,
        checked=len(told.moves) + len(told.births) + len(told.together),
        violations=tuple(found[:SHOWN]),
    )
    distinct = len({move[:2] for move in told.moves})
    return check, f"the event log tells {distinct:,} moves, {len(told.moves) - distinct:,} of them again"
