"""`wms simulate`: a synthetic trace always, the LCG's where it is."""

import json
import os
import resource
import warnings
from pathlib import Path
from typing import Any

import pytest

from wms.cli.__main__ import run

LCG = Path(os.environ.get("WMS_LCG_TRACE", Path(__file__).parents[3] / "LCG-2005-1.swf.gz"))
"""From the Parallel Workloads Archive, https://www.cs.huji.ac.il/labs/parallel/workload/; it is not part of the project."""


Captured = pytest.CaptureFixture[str]


def trace(path: Path, jobs: int = 300) -> Path:
    head = ["; Version: 2.2", "; Partition: 1 one.org", "; Partition: 2 two.org"]
    lines = [
        f"{n} {n * 20} -1 {60 + n * 37 % 900} 1 -1 -1 {1 + n % 2} 1200 -1 -1 {n % 5} {n % 3} -1 -1 {1 + n % 2} -1 -1"
        for n in range(jobs)
    ]
    path.write_text("\n".join([*head, *lines]))
    return path


def scenario(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def found(capsys: Captured) -> Any:
    return json.loads(capsys.readouterr().out)


def test_scenarios_are_compared(tmp_path, capsys):
    more = scenario(tmp_path / "more.toml", 'load = 2\n[[sites]]\nsite = "one.org"\nslots = 50\n')
    small = scenario(tmp_path / "small.toml", 'draw = "proportional"\nload = 2\n')
    arguments = ["simulate", str(trace(tmp_path / "t.swf")), "--scenario", "default"]
    assert run([*arguments, "--scenario", more, "--scenario", small, "--seeds", "3", "--json"]) == 0
    said = found(capsys)
    assert [each["name"] for each in said["scenarios"]] == ["default", "more", "small"]
    default, better, worse = (each["values"] for each in said["scenarios"])
    assert default["wait_mean"]["mean"] < better["wait_mean"]["mean"] < worse["wait_mean"]["mean"]
    assert worse["wait_mean"]["verdict"] == "differs"
    assert {each["values"]["done"]["mean"] for each in said["scenarios"]} == {300}
    assert run([*arguments, "--seeds", "3", "--json"]) == 0
    assert found(capsys)["scenarios"][0]["values"] == default


def test_the_table_names_scenarios_groups_sites_and_what_can_never_run(tmp_path, capsys):
    none = scenario(tmp_path / "none.toml", '[[sites]]\nsite = "one.org"\nslots = 0\n')
    assert run(["simulate", str(trace(tmp_path / "t.swf")), "--scenario", none, "--jobs", "100"]) == 0
    said = capsys.readouterr().out
    for word in ("100 JOBS", "none", "wait, 99 %", "vo1/group1", "two.org", "can never run: site"):
        assert word in said
    assert "one.org  " not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lod = 1", "lod"),
        ("load = 0", "load"),
        ("draw = 'best'", "draw"),
        ("[[limits]]\nkind = 'waiting'\nattribute = 'owner'\nvalue = '*'\nmost = 1", "waiting"),
        ("[[limits]]\nsite = '*'\nmost = 1\n[[limits]]\nsite = '*'\nmost = 2", "another limit of this kind"),
        ("[[limits]]\nsite = '*'\nattribute = 'any'\nvalue = 'x'\nmost = 1", "names no value"),
        ("load =", "invalid"),
    ],
)
def test_a_bad_scenario_is_told_by_its_place(tmp_path, capsys, text, said):
    bad = scenario(tmp_path / "bad.toml", text)
    assert run(["simulate", str(trace(tmp_path / "t.swf")), "--scenario", bad]) == 2
    error = capsys.readouterr().err
    assert said in error.lower()
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "shares.vo1.group9 = { job_share = 2 }",
            "vo1.group9: the workload has no such group; did you mean vo1/",
        ),
        ("shares.vo7.x = { job_share = 2 }", "shares.vo7.x: the workload has no such group"),
        ("shares.vo1.group1 = { job_shar = 2 }", "vo1.group1.job_shar: unknown key; did you mean job_share?"),
        (
            '[[sites]]\nsite = "one.orgg"\nspeed = 2',
            "no site 'one.orgg'; did you mean one.org?; a new one says",
        ),
        ('[[limits]]\nsite = "tow.org"\nmost = 1', "there is no site 'tow.org'; did you mean two.org?"),
        ('[[limits]]\nsite = "*"\nattribute = "vo"\nvalue = "x"\nmost = 1', "has no vo 'x'"),
    ],
)
def test_what_the_workload_does_not_have_is_refused(tmp_path, capsys, text, said):
    bad = scenario(tmp_path / "bad.toml", text)
    assert run(["simulate", str(trace(tmp_path / "t.swf")), "--scenario", bad]) == 2
    assert said in capsys.readouterr().err


def test_all_that_is_wrong_with_all_scenarios_is_said_at_once(tmp_path, capsys):
    one = scenario(tmp_path / "one.toml", "lod = 1\nspeed = 0\n[pilots]\nmost = -1\n[[sites]]\nslots = 3\n")
    two = scenario(tmp_path / "two.toml", "load =")
    none = str(tmp_path / "none.toml")
    words = ["simulate", str(trace(tmp_path / "t.swf"))]
    assert run([*words, "--scenario", one, "--scenario", two, "--scenario", none]) == 2
    said = capsys.readouterr().err
    for each in ("6 things are wrong", "lod: unknown key; did you mean load?", "speed: ", "pilots.most: "):
        assert each in said
    for each in (
        "sites[0]",
        "two.toml: is invalid TOML",
        "none.toml: No such file",
        "--scenario, or default",
    ):
        assert each in said


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_lcg_trace_takes_under_two_minutes(capsys):
    if not LCG.exists():
        warnings.warn(f"NOT TESTED: the LCG trace is not at {LCG}; WMS_LCG_TRACE names it", stacklevel=1)
        pytest.skip(f"the LCG trace is not at {LCG}: get it, and name it in WMS_LCG_TRACE")
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert run(["simulate", str(LCG), "--json"]) == 0
    after = resource.getrusage(resource.RUSAGE_SELF)
    (default,) = found(capsys)["scenarios"]
    assert default["first"]["jobs"] == default["first"]["done"] == 188_041
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 120
