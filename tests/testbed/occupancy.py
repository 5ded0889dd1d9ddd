"""How many jobs were held and ran at a place at every instant, replayed from what the database recorded of them.

The times are those of the transactions that began or ended a hold, by the database's clock when each *began*. A hold is
counted from when its pilot took it: the transaction that says so began after the one that granted it had committed. It is
counted until its end: the transaction that ended it committed later than it began. So at every instant the holds that are
counted were all granted, and none was given back: their number may never pass a limit, not even for a moment.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import asyncpg

HOLDS = """
select a.site, a.ce, j.owner, a.accepted_at as began, a.ended_at as ended
from attempt a join job j using (job_id) where a.accepted_at is not null
"""
RUNS = """
select a.site, a.ce, j.owner, s.at as began,
       (select min(e.at) from job_event e where e.job_id = s.job_id and e.seq = s.seq + 1) as ended
from job_event s join attempt a using (job_id, epoch) join job j using (job_id) where s.event = 'start'
"""


class Span(NamedTuple):
    """One job at one place for a while; `ended` is None of what goes on."""

    site: str
    ce: str
    owner: str
    began: datetime
    ended: datetime | None


class Instant(NamedTuple):
    """When most were counted, and how many."""

    number: int
    at: datetime | None


async def spans(connection: asyncpg.Connection, query: str) -> list[Span]:
    """Return the spans that a query tells of."""
    return [Span(**row) for row in await connection.fetch(query)]


def fullest(spans: Iterable[Span]) -> Instant:
    """Return the instant with the most spans; one that ends in the moment in which another begins is over then."""
    moves: list[tuple[datetime, int]] = []
    for span in spans:
        if span.ended is None or span.ended > span.began:
            moves.append((span.began, 1))
            if span.ended is not None:
                moves.append((span.ended, -1))
    count, most = 0, Instant(0, None)
    for at, change in sorted(moves):
        count += change
        if count > most.number:
            most = Instant(count, at)
    return most
