"""Containers of images for a user who is not root, as pilots at sites are: the tests of images, run by such a user."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

USER = "wms-rootless"
"""A user with a home and a range of subordinate ids, as `useradd --create-home` makes one."""
TESTS = "tests/services/job_agent/payload/test_image_runtime.py"
ROOT = Path(__file__).parents[4]


def missing() -> str:
    """Return what this machine lacks for these tests; empty if nothing."""
    if os.geteuid() != 0:
        return "only root can run tests as another user"
    if USER not in {each.pw_name for each in pwd.getpwall()}:
        return f"there is no user {USER}"
    lacking = [name for name in ("podman", "newuidmap", "busybox") if not shutil.which(name)]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    return "" if interpreter() else "no Python that another user can run has our version"


def interpreter() -> str:
    """Return the path of a Python of our version that other users can run; empty if there is none."""
    own, system = Path(sys.executable).resolve(), Path(f"/usr/bin/python3.{sys.version_info.minor}")
    places = [each for each in (own, system) if each.exists()]
    return next((str(each) for each in places if _is_open(each)), "")


def _is_open(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=f"no containers as another user here: {missing()}")
def test_an_ordinary_user_runs_payloads_in_images() -> None:
    packages = next(each for each in sys.path if each.endswith("site-packages"))
    ran = subprocess.run(
        [
            "runuser", "-u", USER, "--", "env", f"HOME={pwd.getpwnam(USER).pw_dir}", f"PYTHONPATH={packages}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE=1", interpreter(), "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
            "-m", "slow or not slow", TESTS,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert "skipped" not in ran.stdout, ran.stdout[-4000:]
