"""The page of what the benchmarks found says what their results say, and a plot is a drawing."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec

from docs.pages import performance, plot

COST = {"python": 20.0, "postgres": 10.0}
MACHINE = {"cores": 2, "python": "3.11", "postgres": "18.0"}


def size(jobs: int, **more: Any) -> dict[str, Any]:
    return {
        "waiting_jobs": jobs, "task_queues": 10, "sites": 5, "tags": 3, "matchers": 1, "matches_per_second": 40_000,
        "cpu_us_per_match": COST, "batch_p99_ms": 12.0, "index_seconds": 0.4, "database_mib": 100, **more,
    }  # fmt: skip


def keep(folder: Path, name: str, **found: Any) -> None:
    whole = {"benchmark": name, "parameters": {"runs": 3, "peer": ""}, "machine": MACHINE} | found
    (folder / f"{name}.json").write_bytes(msgspec.json.encode(whole))


def test_a_page_has_what_was_measured_and_no_more(tmp_dir: Path) -> None:
    dear = {
        "cpu_us_per_match": {"python": 21.5, "postgres": 11.0},
        "matches_per_second": 30_000,
        "index_seconds": 9.0,
    }
    keep(
        tmp_dir,
        "scaling",
        sizes=[size(10_000), size(1_000_000, **dear)],
        matchers=[size(20_000, matchers=4, batch_p99_ms=99.0)],
        lhcb=None,
    )
    page = performance.page(tmp_dir)
    assert "`python -m bench.scaling --runs 3`, on 2 cores, Python 3.11, Postgres 18.0." in page
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# Performance",
        "## How the cost grows",
    ]
    head, _, *rows = [line for line in page.splitlines() if line.startswith("|")]
    assert head.startswith("| waiting jobs | task queues | sites | tags | matchers | matches/s | Python")
    assert rows == [
        "| 10,000 | 10 | 5 | 3 | 1 | 40,000 | 20 | 10 | 12 | 0.4 | 100 |",
        "| 1,000,000 | 10 | 5 | 3 | 1 | 30,000 | 21.5 | 11 | 12 | 9 | 100 |",
        "| 20,000 | 10 | 5 | 3 | 4 | 40,000 | 20 | 10 | 99 | 0.4 | 100 |",
    ]


def test_a_peer_stands_beside_us(tmp_dir: Path) -> None:
    insertion = {"jobs_per_second": 50_000.0, "one_job_a_message": {"jobs_per_second": 5_000.0}}
    ours = {
        "matches_per_second": 40_000.0, "batch_p50_ms": 10.0, "batch_p99_ms": 20.0, "cpu_us_per_match": COST,
        "index_seconds": 1.0, "insertion": insertion,
    }  # fmt: skip
    theirs = {
        "version": "9.1.22",
        "matching": {"clients": 4, "per_second": 125.5, "p50_ms": 31.0, "p99_ms": 60.0},
        "insertion": {"clients": 2, "per_second": 200.0},
    }
    rounds = {
        "matching": {"median": 318.7, "range": [300, 320], "pairs": [320, 300, 318.7]},
        "insertion": {"median": 250, "range": [249, 260], "pairs": [250, 249, 260]},
    }
    keep(tmp_dir, "matching", ours=ours, dirac=theirs, ratio=rounds)
    page = performance.page(tmp_dir)
    assert "| matches a second | 40,000 | 125.5 |" in page
    assert "| the same, one by one | 5,000 | 200 |" in page
    assert "3 rounds each. We did 318.7 times (300, 318.7, 320) as many matches" in page
    assert "and 250 times (249, 250, 260) as many insertions in bulk" in page
    assert "4 match, a match in 31 ms (p99 60 ms), and 2 insert." in page


def test_the_cost_of_a_match_is_shown_as_jobs_are_taken(tmp_dir: Path) -> None:
    ours = {
        "matches_per_second": 40_000.0, "batch_p50_ms": 10.0, "batch_p99_ms": 20.0, "cpu_us_per_match": COST,
        "index_seconds": 1.0, "insertion": {"jobs_per_second": 1.0, "one_job_a_message": {"jobs_per_second": 1.0}},
    }  # fmt: skip
    dearer = {
        "matches": 90_000,
        "matches_per_second": 20_000.0,
        "cpu_us_per_match": {"python": 50.0, "postgres": 11.0},
    }
    drain = {
        "tenths": [ours | {"matches": 100_000}, dearer],
        "last_to_first": {"matches_per_second": 0.5, "python": 2.5, "postgres": 1.1},
    }
    keep(tmp_dir, "matching", ours=ours, drain=drain)
    page = performance.page(tmp_dir)
    assert "| 0 | 40,000 | 20 | 10 |" in page
    assert "| 100,000 | 20,000 | 50 | 11 |" in page
    assert "| last row to first | 0.5 | 2.5 | 1.1 |" in page


def test_two_sided_matching_stands_beside_plain_queues(tmp_dir: Path) -> None:
    plain = {
        "matches_per_second": 10_000.0, "cpu_us_per_match": COST, "batch_p50_ms": 10.0, "batch_p99_ms": 20.0,
        "index_seconds": 1.0, "first_requests": 2_000, "first_requests_cpu_seconds": 0.5, "requests": 60_000,
    }  # fmt: skip
    more = {"distinct_requirements": 300, "pairs_evaluated_cold": 20_000, "pairs_evaluated": 21_500}
    both = {**plain, "matches_per_second": 6_000.0, **more}
    whole = {"plain": plain, "two_sided": both, "ratio": 0.6, "all_ratios": [0.58, 0.6, 0.61]}
    keep(tmp_dir, "two_sided", parameters={"elements": 400}, **whole)
    page = performance.page(tmp_dir)
    assert "| matches a second | 10,000 | 6,000 |" in page
    assert "It matched 0.60 times as fast (by run: 0.58, 0.60, 0.61)." in page
    assert "and 1,500 for the 60,000 after them." in page


def test_brokering_stands_beside_the_reference(tmp_dir: Path) -> None:
    measured = {
        "classes": {"0-2 s": [99.4, 99, 100.0], "2-5 s": [0.6, 0.0, 1.0], "5-8 s": [0.0, 0.0, 0.0],
                    "8-11 s": [0.0, 0.0, 0.0], "11-inf s": [0.0, 0.0, 0.0]},
        "seconds": {"median": 0.6, "p99": 1.9, "longest": 2.1}, "load": 1.9,
        "together": {"jobs": 400, "submitted_per_second": 21.0, "reserved": 390},
    }  # fmt: skip
    keep(tmp_dir, "brokering-without", resources=12, index_servers=4, without=measured)
    page = performance.page(tmp_dir)
    assert "| 0-2 s | 99.4, 99, 100 | 9.4, 7.5, 12.5 |" in page
    assert "| 11 s and more | 0, 0, 0 | 5.2, 2.5, 8.5 |" in page
    assert "400 jobs of many clients at once came to their elements at 21 a second" in page
    assert "Slurm makes real reservations" not in page
    keep(
        tmp_dir, "brokering-with", resources=12, index_servers=4,
        **{"with": {**measured, "reserved": 199, "places": {"a/b": 150, "a/c": 50}}},
    )  # fmt: skip
    assert "199 of 200 jobs got a reservation one by one, 390 of 400 at once" in performance.page(tmp_dir)


def test_the_plot_is_a_drawing_with_every_point(tmp_dir: Path) -> None:
    keep(tmp_dir, "scaling", sizes=[size(10_000), size(1_000_000)], matchers=[], lhcb=None)
    drawing = ET.fromstring(performance.scaling_plot(tmp_dir))
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}circle"))) == 6


def test_words_in_a_plot_are_words() -> None:
    drawing = ET.fromstring(plot.lines("a < b & c", "x", "y", {"<s>": [(1, 1), (100, 7)]}))
    words = [each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b & c" in words
    assert "<s>" in words


def test_whole_lives_stand_beside_a_queue_in_postgres(tmp_dir: Path) -> None:
    awa = {"version": "0.6.9", "workers": 1_024, "jobs_a_round": 10_000, "lives_per_second": 2_000.0}
    pairs = {"median": 4.0, "range": [3.0, 5.0], "pairs": [5.0, 3.0, 4.0]}
    keep(tmp_dir, "lives", lives_per_second=8_000.0, awa=awa, ratio=pairs)
    page = performance.page(tmp_dir)
    assert "| whole lives a second | 8,000 | 2,000 |" in page
    assert "We did 4 times (3, 4, 5) as many" in page
