"""A machine with a kernel of its own, for what this machine's kernel cannot be asked for: `python -m deploy.testbed.kernel_machine COMMAND ...`.

The kernel is Debian's User Mode Linux, a program that needs neither rights nor virtualisation. Its system is this one's root
directory, read-only. Memory has what is written. There is no network but loopback. All controllers of cgroups (version 2) are there, and the
command runs in a cgroup that is delegated to it, as by a batch system. Or systemd is the machine's init, and the command runs in a service
of systemd, to which nothing is delegated.
"""

import argparse
import functools
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.testbed import packages, systemd_units
from deploy.testbed.daemons import TestbedError

KERNEL: Final = "linux.uml"
CGROUP: Final = "/sys/fs/cgroup/site/pilot"
"""The directory, in the machine, of the cgroup that is delegated to the command."""
SCRATCH: Final = "/mnt"
"""The directory, in the machine, that can be written to; everything there is in memory."""
MEMORY_MB: Final = 1024
END_SECONDS: Final = 5.0
TRIAL_SECONDS: Final = 60.0
ADDRESS: Final = "192.0.2.1/32"
"""An address beside 127.0.0.1: if a machine has no other, libc resolves no names for programs such as those of Slurm."""
TOO_WIDE: Final = "ptrace set fp regs failed"
"""What the kernel says before it ends on a processor whose registers have more bytes than it saves, such as one with AMX."""
STATUS, OUTPUT, SCRIPT, UNITS = "status", "output", "script", "units"
USER: Final = "wms-machine"
USER_ID: Final = 1000
"""The id of the machine's ordinary user, USER, who has a range of subordinate ids for containers."""
_ENTRIES: Final = {
    "passwd": f"{USER}:x:{USER_ID}:{USER_ID}::{SCRATCH}/home:/bin/sh\n",
    "subuid": f"{USER}:2000000:65536\n",
    "subgid": f"{USER}:2000000:65536\n",
}
"""The lines that the machine has before those of this machine's files, by the names of the files in `/etc`."""
_STORAGE: Final = f"""\
[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "{SCRATCH}/images"
"""
"""Where Podman keeps images and containers in the machine, whose kernel has no other driver."""

# Nothing of the kernel's own messages is among what the command prints: that goes to a file of this machine.
_INIT = """\
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
ip link set lo up
ip addr add {address} dev lo
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs -o mode=1777 none {scratch}
mkdir -p /dev/pts /dev/shm {scratch}/report {scratch}/tmp {scratch}/home
chmod 1777 {scratch}/tmp {scratch}/home
mount -t devpts -o newinstance,ptmxmode=0666 none /dev/pts
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t hostfs -o {report} none {scratch}/report
for file in passwd subuid subgid; do mount --bind {scratch}/report/$file /etc/$file; done
mount -t tmpfs -o mode=0755 none /run
install -d -o {uid} -m 700 /run/user/{uid}
if [ -d /etc/containers ]; then
    cp -r /etc/containers {scratch}/containers
    cp {scratch}/report/storage.conf {scratch}/containers
    mount --bind {scratch}/containers /etc/containers
fi
{opening}
{rest}"""

_END = """\
echo $? > {scratch}/report/{status}
echo o > /proc/sysrq-trigger
sleep 60
"""

_DELEGATING = """\
mkdir -p {cgroup}
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
echo "+cpu +memory +pids" > "$(dirname {cgroup})/cgroup.subtree_control"
chown {uid} {cgroup} {cgroup}/cgroup.procs {cgroup}/cgroup.subtree_control {cgroup}/cgroup.threads
(
    echo 0 > {cgroup}/cgroup.procs
    cd {directory} || exit 70
    export HOME={scratch}/home TMPDIR={scratch}/tmp LANG=C.UTF-8 {variables}
    exec setpriv --reuid={uid} --regid={uid} --clear-groups {command}
) > {scratch}/report/{output} 2>&1 < /dev/null
"""

# Generators would find what this machine has, and cost seconds.
_SYSTEMD = """\
mkdir -p {scratch}/none
mkdir -p /run/systemd/system
mount --bind {scratch}/none /usr/lib/systemd/system-generators
mount --bind {scratch}/none /etc/systemd/system
mount --bind {scratch}/report/units /run/systemd/system
exec /lib/systemd/systemd --unit={unit} --log-target=null --show-status=false
"""

_IN_SYSTEMD = """\
#!/bin/sh
cd {directory} || exit 70
export HOME={scratch}/home TMPDIR={scratch}/tmp LANG=C.UTF-8 {variables}
{command} > {scratch}/report/{output} 2>&1 < /dev/null
"""


# A directory that lies below another's closed home, such as a Python's, is shown by itself.
_OPENING = """\
mkdir -p {scratch}/shown
mount --bind {shown} {scratch}/shown
mount -t tmpfs -o mode=0755 none {closed}
mkdir -p {shown}
mount --move {scratch}/shown {shown}
"""


@dataclass(frozen=True)
class Ran:
    """The end of a command in a machine: its exit code, and what it printed."""

    code: int
    output: str


def lack(*, systemd: bool = False) -> str:
    """Return what this machine lacks for a machine with a kernel of its own, with `systemd` if that is True; empty if nothing."""
    missing = packages.missing(packages.KERNEL | (packages.SYSTEMD if systemd else {}))
    return (
        f"packages {' '.join(missing)} (as root, `make testbed-install` installs them)"
        if missing
        else _trial()
    )


@functools.cache
def _trial() -> str:
    """Start a machine; return what the processor lacks for it, or nothing."""
    said = _boot(Path("/bin/true"), MEMORY_MB, TRIAL_SECONDS)
    return f"a processor that {KERNEL} knows, by its registers ({TOO_WIDE})" if TOO_WIDE in said else ""


def run(
    command: Sequence[str],
    *,
    uid: int = 0,
    directory: Path | None = None,
    variables: Sequence[str] = (),
    memory_mb: int = MEMORY_MB,
    within: float = 600.0,
    systemd: bool = False,
) -> Ran:
    """Start a machine, run a command in it as the user `uid` in `directory`, and end the machine.

    `variables` are texts NAME=VALUE for the command's environment. `directory` is that of this process if it is None. With
    `systemd`, systemd starts the command, as root. Raise TestbedError if the machine cannot be started, or has not ended
    after `within` seconds.
    """
    if why := lack(systemd=systemd):
        raise TestbedError(f"this machine lacks {why}")
    with tempfile.TemporaryDirectory(prefix="wms-machine-") as place:
        report = Path(place)
        inside = _Inside(command, uid, directory or Path.cwd(), variables, report)
        init = inside.write(systemd=systemd)
        said = _boot(init, memory_mb, within)
        if not (report / STATUS).exists():
            raise TestbedError(f"the machine ended before its command did: {said[-2_000:]}")
        return Ran(int((report / STATUS).read_text()), (report / OUTPUT).read_text(errors="replace"))


class _Inside:
    """The files that a machine starts with, in the directory `report`, which it sees as well; the rest is as for `run`."""

    def __init__(
        self, command: Sequence[str], uid: int, directory: Path, variables: Sequence[str], report: Path
    ) -> None:
        self._report = report
        self._uid = uid
        self._words = {
            "scratch": SCRATCH,
            "cgroup": CGROUP,
            "report": shlex.quote(str(report)),
            "uid": uid,
            "directory": shlex.quote(str(directory)),
            "variables": shlex.join(variables),
            "command": shlex.join(command),
            "output": OUTPUT,
            "status": STATUS,
            "unit": systemd_units.UNIT,
            "address": ADDRESS,
        }

    def write(self, *, systemd: bool) -> Path:
        """Write the files and return the path of the machine's first program."""
        for name, line in _ENTRIES.items():
            present = Path("/etc", name)
            (self._report / name).write_text(line + (present.read_text() if present.exists() else ""))
        (self._report / "storage.conf").write_text(_STORAGE)
        if systemd:
            self._script(SCRIPT, _IN_SYSTEMD + _END)
            systemd_units.write(self._report / UNITS, f"{SCRATCH}/report/{SCRIPT}")
        opening = _opening(Path(sys.base_prefix).resolve()) if self._uid or systemd else ""
        return self._script("init", _INIT, opening, _SYSTEMD if systemd else _DELEGATING + _END)

    def _script(self, name: str, text: str, opening: str = "", rest: str = "") -> Path:
        path = self._report / name
        path.write_text(text.format(**self._words, opening=opening, rest=rest.format(**self._words)))
        path.chmod(0o755)
        return path


def _opening(shown: Path) -> str:
    """Return the commands that let every user pass to a directory; none if everyone may."""
    above = reversed(shown.parents)
    closed = next((each for each in above if not each.stat().st_mode & stat.S_IXOTH), None)
    if closed is None:
        return ""
    return _OPENING.format(scratch=SCRATCH, shown=shlex.quote(str(shown)), closed=shlex.quote(str(closed)))


def _boot(init: Path, memory_mb: int, within: float) -> str:
    """Run a machine to its end; return what its kernel printed."""
    argv = [
        str(shutil.which(KERNEL)),
        f"mem={memory_mb}M",
        "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={init}",
        "con=null", "con0=null,fd:1", "quiet", f"systemd.machine_id={uuid.uuid4().hex}",
    ]  # fmt: skip
    machine = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return machine.communicate(timeout=within)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        raise TestbedError(f"the machine has not ended after {within:g} s") from None
    finally:
        _end(machine)


def _end(machine: "subprocess.Popen[bytes]") -> None:
    """End a machine that runs still, with all its processes, which are in its process group."""
    if machine.poll() is not None:
        return
    machine.terminate()
    try:
        machine.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()


def main() -> int:
    """Run the command of the command line in a machine; return its exit code."""
    parser = argparse.ArgumentParser(prog="kernel_machine", description=__doc__)
    parser.add_argument("--uid", type=int, default=0)
    parser.add_argument("--memory-mb", type=int, default=MEMORY_MB)
    parser.add_argument("--systemd", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    try:
        ran = run(given.command, uid=given.uid, memory_mb=given.memory_mb, systemd=given.systemd)
    except TestbedError as error:
        sys.stderr.write(f"kernel_machine: {error}\n")
        return 75
    sys.stdout.write(ran.output)
    return ran.code


if __name__ == "__main__":
    sys.exit(main())
