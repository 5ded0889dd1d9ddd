"""A real Apptainer, which this Debian may not have: `python -m deploy.testbed.apptainer COMMAND ...` runs a command where it is installed.

Its packages, with those that they need, come from Debian's unstable distribution. They are unpacked into a directory of their own. Only the
command sees them: in a mount namespace of its own they lie over this machine's `/usr` and `/etc`, read-only. All else is this machine's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.testbed.daemons import TestbedError

PACKAGES: Final = ("apptainer", "squashfuse")
SOURCE: Final = "deb [signed-by={keyring}] http://deb.debian.org/debian sid main\n"
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PLACE: Final = Path("/var/cache/wms-testbed/apptainer")
"""The directory with the unpacked packages. Remove it to have newer ones."""
PROGRAM: Final = "usr/bin/apptainer"
STEP_SECONDS: Final = 120.0

# Nodes of sites let every user mount by FUSE. The device files of this machine stay as they are.
_ENTER = """\
set -e
for each in usr etc; do mount -t overlay -o ro,lowerdir="$0/$each:/$each" overlay "/$each"; done
if [ -e /dev/fuse ]; then
    mount -t tmpfs -o mode=0755 none /mnt
    mknod -m 0666 /mnt/fuse c 10 229
    mount --bind /mnt/fuse /dev/fuse
    umount -l /mnt
fi
mount -t overlay -o ro,lowerdir="$0/var/lib:/var/lib" overlay /var/lib
exec "$@"
"""


def lack() -> str:
    """Return why no command can be run with Apptainer here; empty if one can."""
    if os.geteuid() != 0:
        return "the rights of root, which mounts need"
    if not (PLACE / PROGRAM).exists():
        return f"{PLACE} (as root, `make testbed-install` makes it)"
    tried = subprocess.run(entering(["apptainer", "--version"]), capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"mounts over its own system: {tried.stderr.strip()[-300:]}"


def entering(command: Sequence[str]) -> list[str]:
    """Return the command line, for root, that runs `command` where Apptainer is installed. Its exit code is that of `command`."""
    return ["unshare", "--mount", "--propagation=private", "sh", "-c", _ENTER, str(PLACE), *command]


def install() -> None:
    """Get the packages and unpack them, if they are not there. Raise TestbedError if that fails."""
    if (PLACE / PROGRAM).exists():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get") or not KEYRING.exists():
        raise TestbedError(f"missing {PLACE}: only root can make it, with Debian's apt-get and {KEYRING}")
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE.parent) as place:
        made = Path(place) / "tree"
        _unpack(_downloaded(Path(place)), made)
        made.chmod(0o755)
        shutil.rmtree(PLACE, ignore_errors=True)
        made.rename(PLACE)


def _downloaded(place: Path) -> list[Path]:
    """Have apt-get download the packages and all that they need, as for a machine without any package."""
    for name in ("state/lists/partial", "cache/archives/partial", "etc"):
        (place / name).mkdir(parents=True)
    (place / "status").touch()
    (place / "etc" / "sources.list").write_text(SOURCE.format(keyring=KEYRING))
    settings = {
        "Dir::Etc::SourceList": place / "etc" / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": place / "state",
        "Dir::State::status": place / "status",
        "Dir::Cache": place / "cache",
        "APT::Sandbox::User": "root",
        "APT::Keep-Downloaded-Packages": "true",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _ran("apt-get", "-qq", *options, "update")
    wanted = ("--no-install-recommends", "--download-only", "install", *PACKAGES)
    _ran("apt-get", "-qq", "-y", *options, *wanted)
    return sorted((place / "cache" / "archives").glob("*.deb"))


def _unpack(packages: Sequence[Path], directory: Path) -> None:
    for each in packages:
        _ran("dpkg-deb", "--extract", str(each), str(directory))


def _ran(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=STEP_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"{argv[0]} has not ended after {STEP_SECONDS:g} s") from error
    if done.returncode:
        raise TestbedError(f"{argv[0]}: {done.stderr.strip()[-2_000:]}")


def main() -> int:
    """Run the command of the command line where Apptainer is installed; return its exit code."""
    if why := lack():
        sys.stderr.write(f"apptainer: this machine lacks {why}\n")
        return 75
    return subprocess.run(entering(sys.argv[1:]), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
