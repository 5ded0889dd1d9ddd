"""The testbed itself: real clusters that start, run jobs, and leave nothing behind when they end."""

import os
from pathlib import Path

import psutil
import pytest

from deploy.testbed.arc import TRUSTED
from deploy.testbed.daemons import MARK, environment, free_ports, marked
from deploy.testbed.packages import lack
from deploy.testbed.testbed import PROGRAMS, Testbed
from tests.middleware import Sites
from tests.waiting import eventually

pytestmark = pytest.mark.testbed


async def test_both_clusters_run_jobs(testbed: Sites) -> None:
    for name in ("alpha", "beta"):
        assert len(set(testbed.run(name, "sinfo", "-h", "-N", "-o", "%N").split())) >= 2
        testbed.run(name, "srun", "-n1", "-t1", "true")


async def test_a_cluster_has_what_can_be_asked_for_by_name(testbed: Sites) -> None:
    said = testbed.run("alpha", "srun", "-t1", "--gres=gpu:1", "-C", "avx512", "printenv", "SLURMD_NODENAME")
    assert said.strip() == "alpha1"


async def test_nothing_is_left_of_a_testbed_that_ended(tmp_path: Path, testbed: Sites) -> None:
    if lack(PROGRAMS):
        pytest.skip("no second testbed beside the one that was given")
    mine = Testbed(tmp_path)
    mine.up()
    cluster = mine.clusters["alpha"]
    cluster.run("sbatch", "-o", str(tmp_path / "out"), "--wrap", "echo $$; exec sleep 100")
    job = int(await eventually(lambda: _said(tmp_path / "out")))
    mine.down()
    assert marked(tmp_path) == []
    assert not psutil.pid_exists(job) or psutil.Process(job).status() == psutil.STATUS_ZOMBIE
    assert not any(str(tmp_path) in str(link.readlink()) for link in TRUSTED.glob("*") if link.is_symlink())
    assert marked(testbed.root), "the other testbed runs on"
    assert "slurmctld" in (cluster.place / "log" / "slurmctld.log").read_text()


def _said(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_a_testbed_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "beta").write_text("in the way")
    with pytest.raises(NotADirectoryError, match="beta"):
        Testbed(tmp_path).up()
    assert marked(tmp_path) == []


def test_only_what_bears_the_mark_of_a_testbed_is_its_own(tmp_path: Path) -> None:
    assert environment(tmp_path)[MARK] == str(tmp_path)
    assert os.getpid() not in [process.pid for process in marked(tmp_path)]


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
