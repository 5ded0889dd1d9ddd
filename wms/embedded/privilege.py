"""Running Postgres where we are root: it refuses to, and it is right, so it gets to be somebody else.

Two ways, tried in turn. A user namespace in which we seem to be another user: nothing is created and no file changes
its owner. Where the kernel or a container's filter forbids that: another user in earnest, who keeps the right to reach
files below directories closed to it; the cluster is then given to that user.
"""

import contextlib
import enum
import functools
import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wms.errors import Rejected

# initdb wants a user with a name; each system has one of these.
USERS = ("postgres", "nobody", "daemon")
_CAPS = "+dac_override,+dac_read_search"


class Guise(enum.Enum):
    """As whom a program that refuses root runs."""

    SELF = "self"
    NAMESPACE = "namespace"
    OTHER = "other"


@functools.cache
def guise() -> Guise:
    """Find the first way that works here. Raises Rejected if there is none."""
    if os.geteuid() != 0:
        return Guise.SELF
    for each in (Guise.NAMESPACE, Guise.OTHER):
        if works(each):
            return each
    raise Rejected(
        "ROOT_REFUSED",
        "Postgres does not run as root, and neither user namespaces nor setpriv work here",
        "run as an ordinary user, or give the URL of a Postgres that runs elsewhere",
    )


def works(each: Guise) -> bool:
    """Whether programs can be run under that guise here."""
    return _runs(command(each, ["true"], death_signal="KILL"))


def command(each: Guise, argv: Sequence[str], *, death_signal: str) -> list[str]:
    """Return the command line that runs `argv` under that guise and still ends with its parent."""
    match each:
        case Guise.SELF:
            return list(argv)
        case Guise.NAMESPACE:
            return [
                "unshare",
                "--user",
                f"--map-user={_spare_id()}",
                f"--map-group={_spare_id()}",
                "--",
                *argv,
            ]
        case Guise.OTHER:
            # Changing the user id forgets the tie to the parent, so setpriv makes it anew.
            ids = [
                f"--reuid={_spare_id()}",
                f"--regid={_spare_id()}",
                "--clear-groups",
                f"--pdeathsig={death_signal}",
            ]
            return ["setpriv", *ids, f"--inh-caps={_CAPS}", f"--ambient-caps={_CAPS}", "--", *argv]


def give(each: Guise, directory: Path) -> None:
    """Make the tree `directory` belong to whom a program runs as under that guise, if it does not yet."""
    owner = _spare_id() if each is Guise.OTHER else os.geteuid()
    if directory.stat().st_uid == owner:
        return
    for root, directories, files in os.walk(directory):
        for name in (*directories, *files):
            os.chown(Path(root) / name, owner, owner, follow_symlinks=False)
    os.chown(directory, owner, owner)  # last: done means all of it is done


@functools.cache
def _spare_id() -> int:
    for name in USERS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    raise Rejected(
        "ROOT_REFUSED", f"no user of this machine is named {', '.join(USERS)}", "run as an ordinary user"
    )


def _runs(argv: Sequence[str]) -> bool:
    if shutil.which(argv[0]) is None:
        return False
    return subprocess.run(argv, capture_output=True, check=False, timeout=10).returncode == 0
