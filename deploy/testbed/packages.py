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

IMAGES = {
    "podman": "podman",
    "crun": "crun",
    "runc": "runc",
    "newuidmap": "uidmap",
    "busybox": "busybox-static",
}
"""What tests of payloads in images need; the testbed needs none of it."""

JAVA = {"java": "openjdk-17-jre-headless", "mvn": "maven"}
"""What Apache Kafka and the S3 server of the tests run on; the testbed needs none of it."""

WEB = {"node": "nodejs", "npm": "npm", "chromium": "chromium"}
"""What tests of the dashboard and the OpenID provider need; the testbed needs none of it."""

CLOCK = {"faketime": "faketime"}
"""What a test of clocks that disagree needs; the testbed needs none of it."""

NETWORK = {"ip": "iproute2", "iptables": "iptables"}
"""What a test needs to drop a host's packets; the testbed needs none of it."""

BESIDE = {**SANDBOX, **STORAGE, **DATABASE, **KERNEL, **SYSTEMD, **IMAGES, **JAVA, **WEB, **CLOCK, **NETWORK}
"""All that tests need and the testbed does not."""

INSTALL_SECONDS = 600.0

SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
"""The directories in which programs are looked for."""


def missing(programs: Mapping[str, str]) -> list[str]:
    """Return the packages whose programs are not there, sorted."""
    return sorted({package for program, package in programs.items() if not _is_there(program)})


def _is_there(program: str) -> bool:
    if program.startswith("/"):
        path = Path(program)
        return path.is_file() or (path.is_dir() and any(path.iterdir()))
    return shutil.which(program, path=SEARCHED) is not None


def lack(programs: Mapping[str, str]) -> str:
    """Return why a testbed cannot be started here, or nothing."""
    if packages := missing(programs):
        return f"packages {' '.join(packages)} (as root, `make testbed-install` installs them)"
    return "" if os.geteuid() == 0 else "the rights of root, which its daemons need"


def install(packages: Iterable[str]) -> None:
    """Install packages by apt, each by itself if they cannot be had together. Raises TestbedError if one could not be installed."""
    wanted = sorted(packages)
    if not wanted:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise TestbedError(f"missing {' '.join(wanted)}: only root can install them, by apt-get")
    _apt("update")
    try:
        _add(*wanted)
    except TestbedError:
        faults = [fault for each in wanted if (fault := _fault_of(each))]
        if faults:
            raise TestbedError("; ".join(faults)) from None


def _fault_of(package: str) -> str:
    try:
        _add(package)
    except TestbedError as error:
        return f"{package}: {str(error)[-300:]}"
    return ""


def _add(*wanted: str) -> None:
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
