"""The tests of images, run by a user who is not root, as pilots at sites are."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

USER = "wms-rootless"
"""A user with a home and a range of subordinate ids, as `useradd --create-home` makes one."""
TESTS = "tests/services/job_agent/payload/test_image_runtime.py"
ROOT = Path(__file__).parents[4]


def missing(*programs: str) -> str:
    """Return what this machine lacks for these tests, which need `programs`; empty if nothing."""
    if os.geteuid() != 0:
        return "only root can run tests as another user"
    if USER not in {each.pw_name for each in pwd.getpwall()}:
        return f"there is no user {USER}"
    lacking = [name for name in programs if not shutil.which(name)]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    return "" if interpreter() else "no Python that another user can run has our version"


def run_image_tests(entering: Callable[[Sequence[str]], list[str]]) -> str:
    """Run the tests of images as that user; return what pytest printed. Raise AssertionError if one failed.

    `entering` makes the command line that runs another one in a machine with what the tests need.
    """
    packages = next(each for each in sys.path if each.endswith("site-packages"))
    ran = subprocess.run(
        entering([
            "runuser", "-u", USER, "--", "env", f"HOME={pwd.getpwnam(USER).pw_dir}", f"PYTHONPATH={packages}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE=1", interpreter(), "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-rs",
            "-m", "slow or not slow", TESTS,
        ]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
    return ran.stdout


def interpreter() -> str:
    """Return the path of a Python of our version that other users can run; empty if there is none."""
    own, system = Path(sys.executable).resolve(), Path(f"/usr/bin/python3.{sys.version_info.minor}")
    places = [each for each in (own, system) if each.exists()]
    return next((str(each) for each in places if _is_open(each)), "")


def _is_open(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))
