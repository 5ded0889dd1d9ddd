"""A machine with a kernel of its own: what a command finds in it, and what of it is told."""

from pathlib import Path

import pytest

from deploy.testbed.daemons import TestbedError
from deploy.testbed.kernel_machine import lack, run

pytestmark = pytest.mark.testbed


@pytest.fixture(autouse=True)
def possible() -> None:
    if why := lack():
        pytest.skip(f"MACHINES NOT TESTED: this machine lacks {why}")


def test_a_command_has_a_cgroup_of_its_own_and_its_end_is_told() -> None:
    script = (
        'cat /proc/self/cgroup; cat /sys/fs/cgroup/site/pilot/cgroup.controllers; echo "$A"; id -u; exit 7'
    )
    ran = run(["sh", "-c", script], uid=1000, variables=["A=b c"])
    assert ran.code == 7
    assert ran.output.splitlines() == ["0::/site/pilot", "cpu memory pids", "b c", "1000"]


def test_it_writes_to_memory_alone(tmp_path: Path) -> None:
    inside = "/mnt/tmp/file"
    ran = run(["sh", "-c", f"echo 1 > {inside} && cat {inside}; echo 2 > {tmp_path}/file"])
    assert ran.output.startswith("1\n")
    assert "Read-only file system" in ran.output
    assert list(tmp_path.iterdir()) == []
    assert not Path(inside).exists()


def test_one_that_does_not_end_is_ended() -> None:
    with pytest.raises(TestbedError, match="has not ended"):
        run(["sleep", "1000"], within=4.0)
