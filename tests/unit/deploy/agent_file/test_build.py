"""The agent's file has what the agent imports and no more, and the same sources give the same bytes."""

import io
import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import grimp
import pytest

from deploy.agent_file.build import AGENT, DIRECT, build, closure, locked, modules, own, packed, zipped

TREE = Path(__file__).parents[4]
HEAVY = ("asyncpg", "lxml", "numpy", "psutil", "rich", "starlette", "uvicorn", "cyclopts")


def test_the_agent_needs_no_library_but_those_in_its_file() -> None:
    graph = grimp.build_graph("wms", "services", include_external_packages=True)
    imported = {
        each for name in modules(AGENT) for each in graph.find_modules_directly_imported_by(name)
    } - modules(AGENT)
    assert imported.isdisjoint(HEAVY)
    # What it can do without: it says so where these are missing.
    assert {"uvloop", "obstore", "classad2"} <= imported
    assert set(DIRECT) <= imported


def test_packages_around_its_modules_come_with_them() -> None:
    members = own(TREE)
    assert {
        "wms/__init__.py",
        "services/job_agent/__main__.py",
        "wms/transfer/web_mover.py",
    } <= members.keys()
    assert not [name for name in members if name.startswith(("wms/db", "services/matcher"))]


def test_libraries_come_with_what_they_need_by_the_lock_file() -> None:
    names = closure(["aiohttp", "cryptography"])
    assert {"aiohttp", "yarl", "idna", "cffi"} <= set(names)
    lock = locked((TREE / "requirements.lock").read_text(), names)
    assert lock.count("==") == len(names)
    assert all("--hash=sha256:" in part for part in lock.split("==")[1:])
    with pytest.raises(ValueError, match="nowhere"):
        locked(lock, ["nowhere"])


def test_a_file_for_another_machine_says_so_where_it_cannot_run(tmp_path: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    wheels = tmp_path / other / version
    wheels.mkdir(parents=True)
    # No wheel is needed to be refused, so that none is downloaded.
    (wheels / "complete.txt").write_text(locked((TREE / "requirements.lock").read_text(), closure(DIRECT)))
    build(TREE, tmp_path / "agent.pyz", tmp_path, [version], other)
    argv = [sys.executable, "-I", str(tmp_path / "agent.pyz")]
    started = subprocess.run(argv, capture_output=True, check=False, text=True)
    assert started.returncode == 69
    assert f"it needs Linux on {other}" in started.stderr


def test_equal_members_give_equal_bytes_in_whatever_order() -> None:
    members = {"cp311/b.so": b"2" * 1000, "common/a.py": b"1", "cp312/b.so": b"3" * 1000}
    backwards = dict(reversed(members.items()))
    made = packed(members)
    assert made == packed(backwards)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        assert [each.name for each in archive] == ["common/a.py", "cp311/b.so", "cp312/b.so"]
        assert {(each.mtime, each.uid, each.mode) for each in archive} == {(0, 0, 0o644)}
    file = zipped({"__main__.py": b"print(1)", "x": made})
    assert file == zipped({"__main__.py": b"print(1)", "x": made})
    assert file.startswith(b"#!/usr/bin/env python3\n")
    assert zipfile.ZipFile(io.BytesIO(file)).read("x") == made
