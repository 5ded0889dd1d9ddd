"""Real middleware for tests: a testbed of the session's own, which ends with the session however that ends.

WMS_TESTBED_DIR=DIR takes the one that `make testbed-up DIR=DIR` started.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.testbed import closed_network, packages
from deploy.testbed.testbed import PROGRAMS, SITES

ROOT = Path(__file__).parents[1]


class Sites:
    """The sites of a testbed that runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.told: dict[str, dict[str, Any]] = json.loads((root / SITES).read_text())

    def slurm(self, name: str) -> Path:
        """Return the slurm.conf of a cluster, `alpha` or `beta`."""
        return Path(self.told[name]["configuration"])

    def run(self, name: str, *argv: str) -> str:
        """Run one of Slurm's tools against a cluster and return what it prints."""
        environment = {**os.environ, "SLURM_CONF": str(self.slurm(name))}
        return subprocess.run(argv, env=environment, check=True, text=True, capture_output=True).stdout


@contextmanager
def a_testbed() -> Iterator[Sites]:
    """Start a testbed, or take the one that is given; skip, saying what is missing, where that cannot be."""
    if given := os.environ.get("WMS_TESTBED_DIR"):
        yield Sites(Path(given))
        return
    if lack := packages.lack(PROGRAMS):
        pytest.skip(f"REAL MIDDLEWARE NOT TESTED: this machine lacks {lack}")
    with _a_place() as root, _kept_up(root):
        yield Sites(root)


@contextmanager
def a_closed_testbed(hidden: str) -> Iterator[Sites]:
    """Start a testbed of one cluster whose nodes reach this machine alone, and find the directory `hidden` below the testbed's empty.

    Skip, saying what is missing, where that cannot be.
    """
    if lack := packages.lack(PROGRAMS):
        pytest.skip(f"CLOSED NETWORK NOT TESTED: this machine lacks {lack}")
    with _a_place() as root:
        if lack := closed_network.lack(root):
            pytest.skip(f"CLOSED NETWORK NOT TESTED: this machine lacks {lack}")
        (root / hidden).mkdir(parents=True)
        with _kept_up(root, "--cluster=alpha=3x4", f"--hide={root / hidden}"):
            yield Sites(root)


@contextmanager
def _a_place() -> Iterator[Path]:
    # Not below pytest's directory, which is closed to the users that jobs run as, and too long for a socket's name.
    root = Path(tempfile.mkdtemp(prefix="wms-testbed-", dir="/tmp"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _kept_up(root: Path, *options: str) -> Iterator[None]:
    """Have a process keep the testbed up as long as we hold its standard input, which even our murder ends."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "deploy.testbed", "run", str(root), *options],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        assert keeper.stdout.readline().startswith(b"up "), "the testbed did not start; it said why above"
        yield
    finally:
        keeper.stdin.close()
        keeper.stdout.close()
        keeper.wait(60)
