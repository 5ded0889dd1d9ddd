"""The demonstration's workload: how the library is divided, what the payload counts, and that a wrong sum is seen."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from wms.demo import token_count, workload
from wms.errors import Rejected


def test_this_pythons_library_makes_enough_jobs_and_no_file_is_counted_twice() -> None:
    units = workload.units()
    assert len(units) >= workload.LEAST_UNITS >= 200
    assert len({unit.name for unit in units}) == len(units)
    files = Counter(path for unit in units for _, path in unit.files)
    assert set(files.values()) == {1}
    assert not any("test" in path.parts or "tests" in path.parts for path in files)


def library(root: Path) -> Path:
    for name in ("alone.py", "pack/__init__.py", "pack/a.py", "pack/b.py", "pack/sub/__init__.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {name!r}\n" * len(name))
    (root / "pack/tests").mkdir()
    (root / "pack/tests/__init__.py").write_text("not python (")
    return root


def test_a_job_a_package_or_module_and_the_largest_are_split(tmp_path: Path) -> None:
    root = library(tmp_path)
    assert [unit.name for unit in workload.units(root, least=1)] == ["alone", "pack", "pack.sub"]
    parts = workload.units(root, least=4)
    assert [unit.name for unit in parts] == ["alone", "pack.sub", "pack/1", "pack/2"]
    assert sum(unit.size for unit in parts) == sum(unit.size for unit in workload.units(root, least=1))
    # There are no more files than that.
    assert len(workload.units(root, least=100)) == 5


def test_a_library_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="NO_SOURCES"):
        workload.units(tmp_path)


def test_the_payload_run_as_a_program_comes_to_what_is_computed_here(tmp_path: Path) -> None:
    units = workload.units(library(tmp_path / "lib"), least=1)
    counts = tmp_path / "counts"
    counts.mkdir()
    for number, unit in enumerate(units):
        for name, path in unit.files:
            target = tmp_path / str(number) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        payload(tmp_path, "count", unit.name, str(number))
        (tmp_path / token_count.COUNTS).rename(counts / f"{number}.json")
    payload(tmp_path, "merge", "counts")
    merged = workload.read_merged(tmp_path)
    right = workload.compute(units)
    assert workload.differences(merged, right) == []
    assert right["files"] == 5
    assert right["lines"] == sum(len(name) for name, _ in (f for unit in units for f in unit.files))
    assert right["tokens"]["STRING"] == right["lines"]


def payload(place: Path, *arguments: str) -> None:
    argv = [sys.executable, "-I", "-S", str(workload.PROGRAM), *arguments]
    subprocess.run(argv, cwd=place, check=True, timeout=30)


def test_a_sum_that_is_off_by_one_is_seen(tmp_path: Path) -> None:
    right = workload.compute(workload.units(library(tmp_path), least=1))
    wrong = json.loads(json.dumps(right))
    wrong["tokens"]["STRING"] += 1
    assert [line.partition(":")[0] for line in workload.differences(wrong, right)] == ["tokens"]
    assert len(workload.differences({}, right)) == len(right)
