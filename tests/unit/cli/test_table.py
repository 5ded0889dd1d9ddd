"""Tables and the screen of `wms top`, in terminals of 80 and 200 columns."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.messages.examples import AT, LINE, PLAN_LINE
from wms.cli import health, job_table, limits, places, shares, why
from wms.cli.keyboard import split
from wms.cli.table import ALWAYS, GAP, TableColumn, column, fitted, length, wrapped
from wms.cli.top_screen import HEAD, JobRates, ScreenSection, ScreenView, pressed, screen
from wms.errors import Rejected
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
        "sites": (places.SITES, places.site_rows((ELEMENT,)), (SITE, CE)),
        "pilots": (places.PILOTS, places.pilot_rows([PILOT]), (PILOT.pilot_id,)),
        "plans": (places.PLANS, places.plan_rows([PLAN_LINE]), ()),
        "queues": (places.QUEUES, [places.queue_row(QUEUE)], ("1234",)),
        "shares": (shares.SHARES, [shares.row(SHARE)], ("atlas", "production")),
        "limits": (limits.LIMITS, [limits.row(LIMIT, counts)], (SITE, CE, "owner=alice")),
        "status": (health.PARTS, [health.row(PART)], ("pilot_submitter",)),
        "why": (why.COLUMNS, why.rows((VERDICT,)), (SITE, CE)),
    }
    return {
        name: (list(columns), [list(map(str, row)) for row in rows], ids)
        for name, (columns, rows, ids) in whole.items()
    }


def text(lines: list[list[str]]) -> list[str]:
    return ["  ".join(line) for line in lines]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", sorted(tables()))
def test_a_table_fits_its_terminal_and_ids_are_whole(name: str, width: int) -> None:
    columns, rows, ids = tables()[name]
    table = fitted(columns, rows, width)
    lines = text(table.lines)
    assert max(map(length, lines)) <= width, lines
    for each in ids:
        assert any(each in line for line in lines), (each, lines)
    if width == 200:
        assert not table.left_out
        assert not table.as_records


@pytest.mark.parametrize("name", sorted(tables()))
def test_at_80_columns_what_matters_is_there(name: str) -> None:
    columns, rows, _ = tables()[name]
    table = fitted(columns, rows, 80)
    shown = " ".join(text(table.lines))
    for each in map(column, columns):
        if each.priority <= 1:
            assert each.name in shown, (each, shown)


def test_reasons_are_wrapped_and_not_cut() -> None:
    for name in ("pilots", "sites", "why"):
        columns, rows, _ = tables()[name]
        at = [column(each).fit for each in columns].index("wrap")
        table = fitted(columns, rows, 80)
        assert "…" not in "".join(line[-1] for line in table.lines if line)
        words = {word for word in rows[0][at].split() if len(word) < 14}
        assert words <= {word for line in table.lines for cell in line for word in cell.split()}


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")) | st.just(" "), max_size=60)
COLUMNS = st.builds(
    TableColumn,
    st.sampled_from(["A", "SITE", "SLOTS>", "A LONG HEADING"]),
    st.integers(1, 9),
    st.sampled_from(["whole", "cut", "wrap"]),
    st.integers(1, 20),
)


@given(st.lists(COLUMNS, min_size=1, max_size=6), st.data(), st.integers(40, 200))
def test_any_table_fits_or_is_shown_as_records(
    columns: list[TableColumn], data: st.DataObject, width: int
) -> None:
    row = st.lists(CELLS, min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    table = fitted(columns, rows, width)
    for line in table.lines:
        assert sum(map(length, line)) + GAP * max(0, len(line) - 1) <= width
    if not table.as_records:
        assert len({tuple(map(length, line)) for line in table.lines}) == 1


def test_ids_that_do_not_fit_make_records() -> None:
    columns = [TableColumn("SITE", ALWAYS), TableColumn("CE", ALWAYS), TableColumn("WHY", fit="wrap")]
    table = fitted(columns, [["s" * 50, "c" * 50, "because it is so"]], 80)
    assert table.as_records
    assert text(table.lines[:3]) == [f"SITE  {'s' * 50}", f"CE    {'c' * 50}", "WHY   because it is so"]


def test_texts_are_wrapped_between_words() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]
    assert wrapped("", 4) == [""]


def test_jobs_are_sorted_by_a_column_and_shown_by_chosen_ones() -> None:
    younger = msgspec.structs.replace(JOB, job_id=8, name="a", submitted_at=AT + timedelta(hours=1))

    def names(sort: str) -> list[object]:
        how = job_table.look(["name,state", "ID"], sort)
        columns, rows = job_table.job_table([SWEEP, JOB, younger], how)
        assert [each.name for each in columns] == ["NAME", "STATE", "ID"]
        return [row[2] for row in rows]

    assert names("") == ["107126-207125", 1_207_126, 8]
    assert names("id") == [8, "107126-207125", 1_207_126]
    assert names("-name") == ["107126-207125", 1_207_126, 8]
    assert names("age")[0] == 8
    assert names("-age")[2] == 8
    assert names("site") == ["107126-207125", 1_207_126, 8]
    for name in ("state", "reason", "tries", "since", "group", "owner"):
        assert len(names(name)) == 3
    with pytest.raises(Rejected, match="no column size"):
        job_table.look(["size"], "")


# --- wms top ---------------------------------------------------------------------------------------------------------

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


def test_a_small_terminal_shows_one_section_after_the_other() -> None:
    view, seen = ScreenView(), []
    for _ in range(4):
        lines, view = shown(view, 80, 24)
        assert len(lines) > 15
        seen.append(lines[HEAD].split()[0])
        view = pressed(view, "\t", 4, 16)
    assert seen == ["jobs", "sites", "pilots", "services"]
    assert view == ScreenView()


def test_a_large_terminal_shows_all_of_them() -> None:
    lines, _ = shown(ScreenView(), 200, 50)
    titles = [line.split()[0] for line in lines if re.match(r"(jobs|sites|pilots|services) \(", line)]
    assert titles == ["jobs", "sites", "pilots", "services"]


def test_the_head_tells_what_is_now_and_not_of_all_times() -> None:
    lines, _ = shown(ScreenView(), 200, 24)
    assert lines[
        1
    ] == "jobs now: 1,234 Waiting, 56 Running   last minute: 120 Done, 3 Failed (2.0 a second)" + ("")
    assert lines[2] == "last hour: 7,200 Done, 15 Failed: 12 MEMORY_LIMIT, 3 EXIT_CODE"


def test_keys_page_through_a_section_and_stop_at_its_ends() -> None:
    lines, view = shown(pressed(ScreenView(section=2), " ", 4, 16), 80, 24, 100)
    assert "lines 17-" in lines[HEAD]
    lines, view = shown(pressed(view, "G", 4, 16), 80, 24, 100)
    last = view.line
    _, view = shown(pressed(view, "j", 4, 16), 80, 24, 100)
    assert view.line == last
    _, view = shown(pressed(view, "g", 4, 16), 80, 24, 100)
    assert (view.line, pressed(view, "k", 4, 16).line) == (0, 0)


def test_the_keys_are_told_and_q_ends() -> None:
    view = pressed(ScreenView(), "?", 4, 16)
    lines, _ = shown(view, 80, 24)
    assert any("one page down" in line for line in lines)
    assert pressed(view, "q", 4, 16) == ScreenView()
    assert pressed(ScreenView(), "q", 4, 16).ended


def test_what_a_terminal_sends_is_told_apart_into_keys() -> None:
    assert split("j\x1b[B\x1bOA\t\x1b[6~q") == ["j", "\x1b[B", "\x1b[A", "\t", "\x1b[6~", "q"]
    assert split("\x1b") == ["\x1b"]
