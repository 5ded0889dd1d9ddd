"""Payloads in images that the kernel holds to their limits, by the real Podman under a kernel with delegated cgroups, as root and another user."""

import sys
from pathlib import Path

import pytest

from deploy.testbed import packages
from deploy.testbed.kernel_machine import USER_ID, lack, run

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.timeout(900)]

TREE = Path(__file__).parents[2]
TESTS = "tests/services/job_agent/payload/test_image_limits.py"


@pytest.fixture(autouse=True)
def possible() -> None:
    if why := lack() or ", ".join(packages.missing(packages.IMAGES)):
        pytest.skip(f"LIMITS OF PAYLOADS IN IMAGES NOT TESTED: this machine lacks {why}")


@pytest.mark.parametrize("uid", [0, USER_ID])
def test_the_kernel_holds_payloads_in_images_to_their_limits(uid: int) -> None:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS]
    ran = run(argv, uid=uid, directory=TREE, variables=[f"XDG_RUNTIME_DIR=/run/user/{uid}"], within=800.0)
    assert ran.code == 0, ran.output
    assert "skipped" not in ran.output, ran.output
