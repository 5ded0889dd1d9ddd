"""Tables with something of everything that the command line shows."""

from datetime import timedelta
from typing import Any

from tests.unit.messages.examples import AT, LINE, PLAN_LINE
from wms.cli import health, job_table, limits, shares, sites_queues_pilots, why
from wms.cli.table import TableColumn, length
from wms.cli.top_screen import JobRates, ScreenSection, ScreenView, screen
from wms.messages import replies
from wms.messages.limits import Limit

SITE, CE = "IN2P3-CC.example.org", "cccreamceli05.example.org"


PILOT = replies.PilotLine(
    pilot_id="p-0123456789abcdef",
    site=SITE,
    ce=CE,
    vo="atlas",
    state="Running",
    slots=8,
    busy=7,
    jobs_done=1_458,
    submitted_at=AT,
    seen_at=AT,
    reason="sent because 2 waiting jobs fit no existing pilot (2 slots each)",
)


ELEMENT = replies.SiteLine(
    site=SITE,
    ce=CE,
    dispatcher="slurm",
    advertised_at=AT,
    expires_at=AT + timedelta(minutes=5),
    fresh=False,
    ad={"slots": 1_000, "tags": ["gpu", "large-memory", "infiniband"], "max_cpu_time": 300_000},
    pilots=40,
    running_jobs=280,
    notices=("suppress: 40 of 40 jobs (MaxJobs)", "avoid: 5 of 9 pilots died unseen within the hour"),
    state="quarantined",
)


QUEUE = replies.QueueLine(
    tq_id=1_234,
    owner="alice",
    owner_group="production",
    vo="atlas",
    cpu_segment=300_000,
    waiting=107_126,
    requirements={"sites": [SITE, "second.example.org", "third.example.org"], "tags": ["gpu", "large"]},
)


SWEEP = replies.SweepLine(
    first=107_126,
    last=207_125,
    name="fit {sample} with {seed}",
    owner="alice",
    owner_group="production",
    vo="atlas",
    counts={"Waiting": 99_000, "Done": 990, "Failed": 10},
    submitted_at=AT,
    job_group="fits-of-november",
)


JOB = LINE.__class__(
    job_id=1_207_126,
    name="a rather long name of a job",
    owner="alice",
    owner_group="g",
    vo="v",
    state="Failed",
    reason="TOO_MANY_ATTEMPTS",
    site=SITE,
    attempts=3,
    submitted_at=AT,
    changed_at=AT,
)


SHARE = replies.ShareLine(
    vo="atlas",
    owner_group="production",
    job_share=2_000,
    job_sharing=True,
    background=False,
    source="set",
    said_by="the operator of the night",
    owners=12,
    waiting_jobs=107_126,
    running_jobs=2_000,
    used_hours=12_345.6,
    effective_share=1_500,
)


LIMIT = replies.LimitLine(
    limit=Limit(kind="running", site=SITE, ce=CE, attribute="owner", value="alice", most=100),
    source="set",
    said_by="operator",
)


PART = health.ProcessHealth(
    name="pilot_submitter", up=True, pid=12_345, starts=3, since="3h05m", lag=0, note="handled 12,345, " * 6
)


VERDICT = replies.CeVerdict(
    site=SITE,
    ce=CE,
    fits=False,
    clauses=("memory: needs 64,000 MiB, has 16,000 MiB", "tag: gpu is not there"),
)


def tables() -> dict[str, tuple[list[TableColumn | str], list[list[str]], tuple[str, ...]]]:
    """Return each table with the ids that have to be whole."""
    counts = replies.LimitList(query_id="q", client="", limits=(LIMIT,), counts=())
    whole: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
        "jobs": (*job_table.job_table([SWEEP, JOB]), ("107126-207125", "1207126")),
        "sites": (sites_queues_pilots.SITES, sites_queues_pilots.site_rows((ELEMENT,)), (SITE, CE)),
        "pilots": (sites_queues_pilots.PILOTS, sites_queues_pilots.pilot_rows([PILOT]), (PILOT.pilot_id,)),
        "plans": (sites_queues_pilots.PLANS, sites_queues_pilots.plan_rows([PLAN_LINE]), ()),
        "queues": (sites_queues_pilots.QUEUES, [sites_queues_pilots.queue_row(QUEUE)], ("1234",)),
        "shares": (shares.SHARES, [shares.row(SHARE)], ("atlas", "production")),
        "limits": (limits.LIMITS, [limits.row(LIMIT, counts)], (SITE, CE, "owner=alice")),
        "status": (health.PARTS, [health.row(PART)], ("pilot_submitter",)),
        "why": (why.COLUMNS, why.rows((VERDICT,)), (SITE, CE)),
    }
    return {
        name: (list(columns), [list(map(str, row)) for row in rows], ids)
        for name, (columns, rows, ids) in whole.items()
    }


PACE = JobRates(
    now={"Waiting": 1_234, "Running": 56},
    last_minute={"Done": 120, "Failed": 3},
    failures={"MEMORY_LIMIT": 12, "EXIT_CODE": 3},
    done_last_hour=7_200,
)


def sections(count: int = 100) -> list[ScreenSection]:
    made = tables()
    return [
        ScreenSection(
            "jobs", made["jobs"][0], [["1", *row[1:]] for row in made["jobs"][1]] * (count // 2), "none"
        ),
        ScreenSection("sites", made["sites"][0], made["sites"][1] * 3, "none"),
        ScreenSection("pilots", made["pilots"][0], made["pilots"][1] * count, "none"),
        ScreenSection("services", made["status"][0], made["status"][1] * 5, "none"),
    ]


def shown(view: ScreenView, width: int, height: int, count: int = 100) -> tuple[list[str], ScreenView]:
    rows, view = screen(PACE, sections(count), view, width, height)
    lines = ["  ".join(row.cells) for row in rows]
    assert len(lines) <= height
    assert max(map(length, lines)) <= width
    return lines, view
