"""An agent in a job of a real Slurm that has its jobs in cgroups of version 2, under a real systemd."""

import json
import sys
from pathlib import Path

import pytest

from deploy.testbed import packages
from deploy.testbed.kernel_machine import lack, run
from tests.testbed.agent_in_slurm import MEMORY_MB

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.timeout(600)]

TREE = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def possible() -> None:
    if why := lack(systemd=True) or ", ".join(packages.missing(packages.SLURM)):
        pytest.skip(f"CGROUPS OF SLURM NOT TESTED: this machine lacks {why}")


def test_an_agent_finds_its_cgroup_not_delegated_and_slurm_ends_all() -> None:
    ran = run(
        [sys.executable, "-m", "tests.testbed.agent_in_slurm"], directory=TREE, systemd=True, within=500.0
    )
    assert ran.code == 0, ran.output
    found = json.loads(ran.output.strip().rpartition("\n")[2])
    assert found["limits"] == "sampled"
    # Slurm 22.05 has no controller for processes, and keeps the files of the cgroup to itself.
    assert "no controller pids in /sys/fs/cgroup/system.slice" in found["fault"]
    assert found["cgroup"].endswith("/job_1/step_batch/user/task_0"), "payloads stay where Slurm sees them"
    assert found["memory"] == str(MEMORY_MB << 20)
