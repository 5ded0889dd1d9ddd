"""Payloads in cgroups and without a network, under a kernel of their own whose cgroups are delegated to root or another user."""

import sys
from pathlib import Path

import pytest

from deploy.testbed.kernel_machine import lack, run

pytestmark = [pytest.mark.testbed, pytest.mark.timeout(900)]

TREE = Path(__file__).parents[2]
PAYLOADS = "tests/services/job_agent/payload"
OTHER_USER = 1000


@pytest.fixture(autouse=True)
def possible() -> None:
    if why := lack():
        pytest.skip(f"LIMITS BY CGROUPS NOT TESTED: this machine lacks {why}")


def passed(uid: int, *arguments: str) -> str:
    """Run tests in a machine as a user; return the last line that they print."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = run([*argv, *arguments], uid=uid, directory=TREE, within=800.0)
    assert ran.code == 0, ran.output
    return ran.output.strip().rpartition("\n")[2]


@pytest.mark.parametrize("name", ["cgroup", "delegation", "kernel_limits"])
@pytest.mark.parametrize("uid", [0, pytest.param(OTHER_USER, marks=pytest.mark.long)])
def test_the_kernel_holds_payloads_to_their_limits(uid: int, name: str) -> None:
    last = passed(uid, f"{PAYLOADS}/test_{name}.py")
    assert "passed" in last
    # What payloads without isolation may do, and nothing else.
    assert ("1 skipped" in last) == (name == "kernel_limits")


@pytest.mark.long
def test_a_pilot_of_another_user_isolates_payloads_and_takes_their_network() -> None:
    # That test writes to the node's /tmp, which is read-only there.
    last = passed(OTHER_USER, f"{PAYLOADS}/test_container.py", "-k", "not below_tmp")
    assert "passed" in last


@pytest.mark.long
def test_ends_are_as_without_cgroups() -> None:
    # The kernel kills at once what takes too much memory.
    ends = "(orphans or time_is_limited or kill or grace or saves) and not memory and not bytearray"
    last = passed(0, f"{PAYLOADS}/test_limit_enforcement.py", f"{PAYLOADS}/test_orphans.py", "-k", ends)
    assert "passed" in last
