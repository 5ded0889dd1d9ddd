"""Payloads in cgroups that a real systemd delegated: in a service of the system, and in a scope of an ordinary user's own manager."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from deploy.testbed.kernel_machine import SCRATCH, USER_ID, lack, run

pytestmark = [pytest.mark.testbed, pytest.mark.long, pytest.mark.timeout(900)]

TREE = Path(__file__).parents[2]
PAYLOADS = "tests/services/job_agent/payload"
TESTS = [f"{PAYLOADS}/test_{name}.py" for name in ("delegation", "kernel_limits")]
DELEGATE = ("-p", "Delegate=yes")
IN_A_SERVICE = ("systemd-run", "--quiet", "--wait", "--pipe", *DELEGATE, f"--working-directory={TREE}",
                "-E", f"HOME={SCRATCH}/home", "-E", f"TMPDIR={SCRATCH}/tmp", "-E", "LANG=C.UTF-8")  # fmt: skip
AS_THE_USER = ("env", f"XDG_RUNTIME_DIR=/run/user/{USER_ID}", "setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups")  # fmt: skip
IN_A_SCOPE = (*AS_THE_USER, "systemd-run", "--quiet", "--user", "--scope", *DELEGATE)


@pytest.fixture(autouse=True)
def possible() -> None:
    if why := lack(systemd=True):
        pytest.skip(f"LIMITS UNDER SYSTEMD NOT TESTED: this machine lacks {why}")


def ran(start: Sequence[str], *arguments: str) -> str:
    """Run tests in a machine whose systemd starts them by the command `start`; return what they print."""
    tests = [*start, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    manager = f"systemctl start user@{USER_ID}.service && exec "
    found = run(["sh", "-c", manager + '"$@"', "sh", *tests], directory=TREE, within=800.0, systemd=True)
    assert found.code == 0, found.output
    return found.output


@pytest.mark.parametrize("start", [IN_A_SERVICE, IN_A_SCOPE], ids=["service", "user"])
def test_the_kernel_holds_payloads_to_their_limits(start: Sequence[str]) -> None:
    # Isolated payloads alone: `test_kernel_limits.py` has the others, under the same kernel.
    last = ran(start, *TESTS, "-k", "not bare").strip().rpartition("\n")[2]
    assert "passed" in last
    assert "skipped" not in last
