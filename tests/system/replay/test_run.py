"""`wms replay` as a user runs it: a small trace, and a piece of a grid's real one where its file is."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

LCG = "LCG-2005-1.swf.gz"
"""A trace of the Parallel Workloads Archive: the LHC Computing Grid, 188,041 jobs of November and December 2005."""


def find_trace() -> Path | None:
    """Return where the trace is: in WMS_TEST_TRACES, or in a directory `shared/data` beside some parent of ours."""
    places = [Path(os.environ["WMS_TEST_TRACES"])] if "WMS_TEST_TRACES" in os.environ else []
    places += [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
    return next((place / LCG for place in places if (place / LCG).is_file()), None)


def replay(*arguments: str, within: float) -> tuple[int, str, str]:
    argv = [sys.executable, "-m", "wms.cli", "replay", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=within)
    return done.returncode, done.stdout, done.stderr


def replayed(*arguments: str, within: float) -> Any:
    code, said, notes = replay(*arguments, "--fresh", "--json", within=within)
    report = msgspec.json.decode(said) if said else {}
    assert code == 0, (notes[-3_000:], report.get("wrong"))
    return report


def small_trace(path: Path) -> Path:
    """Write a trace of 40 jobs of 3 users in 2 groups, at 3 sites, over 20 s; one runs for 30 s."""
    head = ["; Version: 2.2", "; Partition: 1 north.example", "; Partition: 2 south.example"]
    jobs = [
        f"{n} {n // 2} -1 {30 if n == 7 else n % 5} 1 -1 -1 -1 60 -1 -1 {n % 3} {n % 2} -1 -1 {n % 3 + 1} -1 -1"
        for n in range(40)
    ]
    with gzip.open(path, "wt") as file:
        file.write("\n".join([*head, *jobs]) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_trace_ends_correctly(tmp_path: Path) -> None:
    trace = small_trace(tmp_path / "small.swf.gz")
    report = replayed(str(trace), "--speedup", "10", "--data", str(tmp_path / "system"), within=280)
    assert (report["jobs"], report["done"], report["wrong"]) == (40, 40, [])
    assert report["audit"] == "all checks hold"
    assert {line["name"]: line["jobs"] for line in report["vos"]} == {"vo0": 20, "vo1": 20}
    assert {line["name"]: line["jobs"] for line in report["sites"]} == {
        "north.example": 14,
        "south.example": 13,
        "partition3": 13,
    }
    for line in report["vos"] + report["sites"]:
        assert line["started"] == line["done"] == line["jobs"]
        assert 0 <= line["wait"]["median"] <= line["wait"]["p95"]
        assert line["first_start"] <= line["last_start"]
        assert line["first_end"] <= line["last_end"]
    # Job 7 came after 0.3 s and ran for 3 s; the last came after 1.9 s.
    assert max(line["last_end"] for line in report["vos"]) >= 3.3


def test_what_is_no_trace_is_named_by_its_line(tmp_path: Path) -> None:
    trace = tmp_path / "bad.swf"
    trace.write_text("; Version: 2.2\n1 2 3\n")
    code, _, notes = replay(str(trace), "--fresh", within=60)
    assert code == 2
    assert "line 2 has 3 fields, not 18" in notes


def test_a_file_that_is_not_there_and_one_that_is_not_gzipped(tmp_path: Path) -> None:
    (tmp_path / "plain.swf.gz").write_text("no gzip")
    for name in ("none.swf", "plain.swf.gz"):
        code, _, notes = replay(str(tmp_path / name), within=60)
        assert code == 2
        assert f"cannot read {tmp_path / name}" in notes


def test_it_needs_a_system(tmp_path: Path) -> None:
    trace = small_trace(tmp_path / "small.swf.gz")
    code, _, notes = replay(str(trace), "--data", str(tmp_path / "nowhere"), within=60)
    assert code == 2
    assert "there is no system in" in notes


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_two_thousand_jobs_of_the_lhc_computing_grid_end_correctly(tmp_path: Path) -> None:
    trace = find_trace()
    if trace is None:
        pytest.skip(
            f"A REAL TRACE NOT REPLAYED: {LCG} is not on this machine (WMS_TEST_TRACES names its directory)"
        )
    report = replayed(
        str(trace), "--jobs", "2000", "--speedup", "2000", "--data", str(tmp_path / "system"), within=1_450
    )
    assert (report["jobs"], report["done"], report["wrong"]) == (2_000, 2_000, [])
    assert report["audit"] == "all checks hold"
    assert len(report["vos"]) == 6
    assert len(report["sites"]) == 147
