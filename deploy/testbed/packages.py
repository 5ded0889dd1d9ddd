"""What the testbed needs of the operating system, what of it is missing, and how it is installed."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from deploy.testbed.daemons import TestbedError

SLURM = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "munged": "munge"}
"""Programs, or files, and the Debian packages that bring them."""

TORQUE = {"qsub": "slurm-wlm-torque"}
"""Commands of Torque's over Slurm."""

ARC = {
    "/usr/share/arc/arc-arex-ws-start": "nordugrid-arc-arex",
    "/usr/lib/arc/libmcctls.so": "nordugrid-arc-plugins-needed",
    "openssl": "openssl",
}

SANDBOX = {"bwrap": "bubblewrap", "setpriv": "util-linux"}
"""What sites' mapping scripts run in; the testbed needs none of it."""

STORAGE = {
    "nginx": "nginx-extras",
    "xrootd": "xrootd-server",
    "xrdcp": "xrootd-client",
}
"""Storage servers and their tools, which tests of transfers start; the testbed needs none of it."""

DATABASE = {"/usr/lib/postgresql": "postgresql"}
"""A Postgres that speaks TLS, which its tests start; the testbed needs none of it."""

KERNEL = {"linux.uml": "user-mode-linux"}
"""A kernel for machines of their own, which tests start; the testbed needs none of it."""

SYSTEMD = {"/lib/systemd/systemd": "systemd", "/usr/lib/systemd/system/dbus.service": "dbus"}
"""A systemd for such machines; the testbed needs none of it."""

IMAGES = {"podman": "podman", "crun": "crun", "newuidmap": "uidmap", "busybox": "busybox-static"}
"""What tests of payloads in images need; the testbed needs none of it."""

BESIDE = {**SANDBOX, **STORAGE, **DATABASE, **KERNEL, **SYSTEMD, **IMAGES}
"""All that tests need and the testbed does not."""

INSTALL_SECONDS = 600.0


def missing(programs: Mapping[str, str]) -> list[str]:
    """Return the packages whose programs are not there, sorted."""
    return sorted({package for program, package in programs.items() if not _is_there(program)})


def _is_there(program: str) -> bool:
    if program.startswith("/"):
        return Path(program).exists()
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


def lack(programs: Mapping[str, str]) -> str:
    """Return why a testbed cannot be started here, or nothing."""
    if packages := missing(programs):
        return f"packages {' '.join(packages)} (as root, `make testbed-install` installs them)"
    return "" if os.geteuid() == 0 else "the rights of root, which its daemons need"


def install(packages: Iterable[str]) -> None:
    """Install packages by apt. Raises TestbedError where that cannot be, or fails."""
    wanted = sorted(packages)
    if not wanted:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise TestbedError(f"missing {' '.join(wanted)}: only root can install them, by apt-get")
    _apt("update")
    _apt("install", "-y", "--no-install-recommends", *wanted)


def _apt(*arguments: str) -> None:
    done = subprocess.run(
        ["apt-get", "-qq", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise TestbedError(f"apt-get {arguments[0]}: {done.stderr.strip()[-2_000:]}")
