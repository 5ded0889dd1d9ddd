"""Checks all rules of the auditor on one snapshot of a system's database."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import asyncpg
import msgspec

from wms.audit import event_log, queues
from wms.audit.report import AuditReport, Check
from wms.audit.rules import SEGMENTS, legal_moves

SHOWN = 20
_HEAD = re.compile(r"^-- rule: (.+)\n-- invariant: (\d+)\n-- of: (.+)\n", re.MULTILINE)

NOTES = """
select format('%s jobs, %s ended; %s attempts, %s of them lost or withdrawn, %s s of CPU charged; %s leases',
    (select count(*) from job) + (select coalesce(sum(last - first + 1), 0) from block),
    (select count(*) from job where state in ('Done', 'Failed', 'Killed', 'Deleted'))
        + (select coalesce(sum(last - first + 1), 0) from block where state in ('Killed', 'Deleted')),
    count(*), count(*) filter (where outcome in ('lost', 'withdrawn')),
    round(coalesce(sum(cpu_user_seconds + cpu_system_seconds), 0)::numeric, 1), (select count(*) from lease))
from attempt
union all
select format('the outbox holds %s parcels, the oldest due for %s s', count(*),
              round(coalesce(extract(epoch from now() - min(due_at)), 0), 1)) from outbox
union all
select format('%s dead letters, %s of them replayed', count(*), count(replayed_at)) from dead_letter
"""


class _Rule(msgspec.Struct, frozen=True):
    name: str
    invariant: int
    of: str
    query: str


def rules() -> Iterator[_Rule]:
    """Yield the rules that are single SQL queries, in the order of `rules.sql`."""
    text = Path(__file__).with_name("rules.sql").read_text("utf-8")
    heads = list(_HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.end() : following.start() if following else len(text)]
        yield _Rule(head[1], int(head[2]), head[3], body.strip().removesuffix(";"))


async def audit(
    url: str,
    *,
    kafka: str | None = None,
    cpu_segments: tuple[int, ...] = SEGMENTS,
    offers_open: int | None = None,
) -> AuditReport:
    """Check a snapshot of the whole database at `url`. If `kafka` (HOST:PORT) is given, check the events on Kafka against it too.

    `cpu_segments` are the system's CPU segments, in seconds. `offers_open` is the matchers' setting `matching.offers_open`. If it is None, the value
    that the matchers reported is used, or the default if none did. Raise the errors of asyncpg or aiokafka if a server does not answer.
    """
    told = await event_log.read(kafka) if kafka else None
    connection = await asyncpg.connect(url, timeout=20, server_settings={"application_name": "wms audit"})
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return await examine(connection, told, cpu_segments, offers_open)
    finally:
        await connection.close(timeout=5)


async def examine(
    connection: asyncpg.Connection,
    told: event_log.LoggedHistory | None = None,
    cpu_segments: tuple[int, ...] = SEGMENTS,
    offers_open: int | None = None,
) -> AuditReport:
    """Check all rules in the open transaction of the connection. If `told` is given, also check these events from Kafka.

    `cpu_segments` are the system's CPU segments, in seconds. `offers_open` is the matchers' setting; None: the value that they reported.
    """
    # Sorting half a million moves of history in memory, not on disk.
    await connection.execute("set local work_mem = '128MB'")
    given = {"$1::text[]": legal_moves(), "$1::bigint": offers_open}
    checks = [await _held(connection, rule, given) for rule in rules()]
    checks += await queues.checks(connection, cpu_segments)
    notes = [row[0] for row in await connection.fetch(NOTES)]
    if told is not None:
        check, note = await event_log.checks(connection, told)
        checks.append(check)
        notes.append(note)
    return AuditReport(checks=tuple(sorted(checks, key=lambda check: check.invariant)), notes=tuple(notes))


async def _held(connection: asyncpg.Connection, rule: _Rule, known: Mapping[str, object]) -> Check:
    given = [value for parameter, value in known.items() if parameter in rule.query]
    # Both in one statement: most of what a rule costs is to send and plan it.
    row = await connection.fetchrow(
        f"select (select count(*) from {rule.of}),"  # noqa: S608 - the words of our own file
        f" array(select violation from ({rule.query}) as violations (violation) limit {SHOWN})",
        *given,
    )
    assert row is not None
    return Check(name=rule.name, invariant=rule.invariant, checked=row[0], violations=tuple(row[1]))
