"""How long pages of lists of jobs and the views of the dashboard take through HTTPS, in a table of many job rows.

python -m bench.gateway_pages [--rows N] [--seconds N] [--json]

Each view among a million rows, the first time and again. Then, among all rows, a page of 50 by each filter, asked by a user with most of
the jobs, by one whose jobs are a tenth of all, by one whose jobs are the last of the table, and by an operator who sees all. Each kind of
page is asked for 200 times, or for so many seconds. Then counts of all these jobs, of a user's and of a group's, each to its end, and pages
beside a user who counts in a loop.
"""

import time
from collections.abc import Mapping

import asyncpg

from bench.gateway import secured
from bench.gateway_counts import beside_counts, counts
from bench.gateway_users import Users
from bench.measuring import Figures, machine, median, percentile, postgres_version, run
from wms.auth.principal import Right

PAGES = 200
VIEWS = 20
VIEWED_ROWS = 1_000_000
FILTERS = {
    "all": "",
    "newest": "newest=true",
    "a frequent state": "state=done",
    "a rare state": "state=failed",
    "rare states": "state=failed,killed,held",
    "states that none has": "state=staging",
    "waiting, of which there are few": "state=waiting",
    "running, of which there are none": "state=running",
    "live": "state=live&newest=true",
    "a site": "site=site-7",
    "a rare site": "site=site-rare",
    "a site that none has": "site=nowhere",
    "a name": "name=sim-77*",
    "a name that none has": "name=none",
    "a group": "group=group-7",
    "a small group": "group=group-small",
    "a group that none has": "group=none",
    "a rare state in a group": "state=failed&group=group-0",
    "a frequent state at a rare site": "state=done&site=site-rare",
    "a group at a site": "group=group-7&site=site-8",
    "the last minute": "since={minute}&newest=true",
    "the last minute, oldest first": "since={minute}",
    "the last day, failed at a site": "since={day}&state=failed&site=site-0&newest=true",
    "a page in the middle": "after={middle}",
    "outside of sweeps": "alone=true",
    "outside of sweeps, a rare state and site": "alone=true&state=failed&site=site-0",
}
FILTERS_OF_OTHERS = {
    name: FILTERS[name]
    for name in ("all", "newest", "a rare state", "a site that none has", "a small group", "live")
}
MOST, TENTH, LAST, OPERATOR = range(4)
"""The users: one with most of the jobs, one with a tenth of them, one whose jobs have the highest ids, and one who sees all."""
ASKERS = {
    "a user with a tenth of the jobs": TENTH,
    "a user whose jobs are the last": LAST,
    "an operator": OPERATOR,
}
COUNTED = {
    "all, by an operator": (OPERATOR, "everything=true"),
    "most of the jobs": (MOST, "everything=true"),
    "those of a user with a tenth": (TENTH, "everything=true"),
    "a group": (MOST, "group=group-7"),
    "a rare state": (MOST, "state=failed"),
    "live": (MOST, "state=live"),
}
VIEWS_SHOWN = {
    "progress": "/progress?limit=50",
    "overview": "/overview",
    "counts of all jobs": "/jobs/counts?everything=true&in_pieces=true",
    "queues": "/queues?limit=100",
    "sites": "/sites",
    "usage of a week by site": "/usage?by=site&since={week}",
    "usage of a week by day": "/usage?by=day&since={week}",
    "shares": "/shares?limit=200",
}
FILL = """
    insert into job (job_id, description_id, tq_id, owner, owner_group, vo, name, job_group, user_priority, max_attempts, event_seq,
                     state, rare_state, site, submitted_at, changed_at)
    select $2::bigint + n, j.description_id, j.tq_id,
           case when n % 10 = 3 then $4 when n > 0.98 * $7::bigint then $5 else j.owner end, j.owner_group, j.vo,
           'sim-' || n, case when n % 99991 = 0 then 'group-small' else 'group-' || n % 1000 end, j.user_priority, j.max_attempts, 5,
           case when n % 500000 = 7 then 'Waiting' when n % 5000 = 0 then 'Failed' when n % 50000 = 1 then 'Killed' else 'Done' end,
           case when n % 500000 = 7 then null when n % 5000 = 0 then 'Failed' when n % 50000 = 1 then 'Killed' end,
           case when n % 500000 = 7 then null when n % 99989 = 0 then 'site-rare' else 'site-' || n % 100 end,
           now() - n * interval '1 s', now() - n * interval '1 s'
    from job j, generate_series($3::bigint, $6::bigint) n where j.job_id = $1
"""
"""Jobs of long ago: the older ones have the higher ids, so that those of the last minute are the first."""
ATTEMPTS = """
    insert into ended_attempt (job_id, epoch, pilot_id, site, ce, offered_at, accepted_at, started_at, ended_at, outcome, reason,
                               cpu_user_seconds, cpu_system_seconds, wall_seconds, max_rss_bytes)
    select job_id, 1, 'p', site, 'ce', ended_at - interval '60 s', ended_at - interval '59 s', ended_at - interval '58 s', ended_at,
           case when n % 50 = 0 then 'failed' else 'done' end, case when n % 50 = 0 then 'EXIT_CODE' else 'DONE' end, 50, 1, 58, 100000000
    from (
        select job_id, site, n, now() - n * interval '30 ms' as ended_at
        from (select job_id, site, row_number() over () as n from job where state = 'Done' limit $1) j
    ) e
"""
"""Attempts that ended 33 a second: a hundred thousand of them within the last hour."""


async def measure(rows: int, seconds: int) -> Figures:
    async with secured(OPERATOR + 1) as (running, users):
        about = machine(await postgres_version(running))
        users.add("operator", frozenset({Right.OPERATOR}), at=OPERATOR)
        template = await users.submit_one(MOST)
        assert running.facts is not None
        filling = Filling(running.facts.postgres_url, users, template, rows)
        viewed = min(rows, VIEWED_ROWS)
        await filling.fill(1, viewed)
        now = time.time()
        given = {
            "minute": _moment(now - 60),
            "day": _moment(now - 86_400),
            "week": _moment(now - 7 * 86_400),
            "middle": str(template + rows // 2),
        }
        seen = await views(users, given)
        await filling.fill(viewed + 1, rows)
        found = {
            "pages": await pages(users, given, seconds),
            "counts": await counts(users, COUNTED),
            "counting_in_a_loop": await beside_counts(users, MOST, TENTH, 10 * seconds),
        }
    return {"machine": about, "rows": rows, "viewed_rows": viewed, "views": seen, **found}


class Filling:
    """Fills a table with `rows` job rows like that of the job `template`, which is the only one before, and with attempts."""

    def __init__(self, url: str, users: Users, template: int, rows: int) -> None:
        self._url = url
        self._others = users.owners[TENTH], users.owners[LAST]
        self._template = template
        self._rows = rows

    async def fill(self, first: int, last: int) -> None:
        """Make the rows with these numbers, and, with the first row, the attempts of the jobs so far."""
        connection = await asyncpg.connect(self._url, command_timeout=3_600)
        try:
            for low in range(first, last + 1, VIEWED_ROWS):
                high = min(last, low + VIEWED_ROWS - 1)
                given = (self._template, self._template, low, *self._others, high, self._rows)
                await connection.execute(FILL, *given)
            if first == 1:
                await connection.execute(ATTEMPTS, last)
            await connection.execute("vacuum (analyze) job, ended_attempt")
        finally:
            await connection.close()


async def pages(users: Users, given: Mapping[str, str], seconds: float) -> Figures:
    """Ask for pages by all filters, and by some of them as other users."""
    found = {name: await _page(users, MOST, each.format(**given), seconds) for name, each in FILTERS.items()}
    for title, user in ASKERS.items():
        for name, each in FILTERS_OF_OTHERS.items():
            found[f"{name}: {title}"] = await _page(users, user, each.format(**given), seconds)
    return found


async def _page(users: Users, user: int, chosen: str, seconds: float) -> Figures:
    page = await users.ask(user, "GET", f"/jobs?limit=50&{chosen}")
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < PAGES and time.perf_counter() < began + seconds:
        found.append(await _milliseconds(users, user, f"/jobs?limit=50&{chosen}"))
    return {
        "jobs": len(page["jobs"]),
        "goes_on": page["after"] is not None,
        "p50_ms": median(found),
        "p99_ms": percentile(found, 0.99),
    }


async def views(users: Users, given: Mapping[str, str]) -> Figures:
    """Ask for each view, by the user with most of the jobs and by the operator."""
    found = {}
    for title, user in {"a user": MOST, "an operator": OPERATOR}.items():
        for name, path in VIEWS_SHOWN.items():
            first = await _milliseconds(users, user, path.format(**given))
            again = [await _milliseconds(users, user, path.format(**given)) for _ in range(VIEWS)]
            found[f"{name}: {title}"] = {"first_ms": median([first]), "p50_ms": median(again)}
    return found


async def _milliseconds(users: Users, user: int, path: str) -> float:
    began = time.perf_counter()
    await users.ask(user, "GET", path)
    return 1e3 * (time.perf_counter() - began)


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


if __name__ == "__main__":
    run("gateway_pages", measure, rows=10_000_000, seconds=10)
