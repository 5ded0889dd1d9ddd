"""Chooses the user that runs Postgres if this process is root, since Postgres refuses to run as root. There are two methods, tried in turn.

The first is a user namespace in which root appears as another user; no file changes its owner. The second is for machines where the kernel
or a container forbids the first. It is another real user, with the capability to reach files below closed directories. The database cluster
then belongs to that user.
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

# initdb needs a user with a name; each system has one of these.
USERS = ("postgres", "nobody", "daemon")
_CAPS = "+dac_override,+dac_read_search"


class PostgresUser(enum.Enum):
    """The user that runs Postgres: this process's own, another in a user namespace, or another real user of the machine."""

    SELF = "self"
    NAMESPACE = "namespace"
    OTHER = "other"


@functools.cache
def postgres_user() -> PostgresUser:
    """Return the kind of user that can run Postgres on this machine, the first that works. Raise Rejected if none does. The result is cached."""
    if os.geteuid() != 0:
        return PostgresUser.SELF
    for each in (PostgresUser.NAMESPACE, PostgresUser.OTHER):
        if works(each):
            return each
    raise Rejected(
        "ROOT_REFUSED",
        "Postgres does not run as root, and neither user namespaces nor setpriv work here",
        "run as an ordinary user, or give the URL of a Postgres that runs elsewhere",
    )


def works(each: PostgresUser) -> bool:
    """Return whether this machine can run programs as this kind of user. The command `true` is run as a test."""
    return _runs(command(each, ["true"], death_signal="KILL"))


def command(each: PostgresUser, argv: Sequence[str], *, death_signal: str) -> list[str]:
    """Return the command line that runs the program `argv` as this kind of user.

    `death_signal`, such as "QUIT", is sent to the program when its parent dies; only `PostgresUser.OTHER` needs it here.
    """
    match each:
        case PostgresUser.SELF:
            return list(argv)
        case PostgresUser.NAMESPACE:
            return [
                "unshare",
                "--user",
                f"--map-user={_spare_id()}",
                f"--map-group={_spare_id()}",
                "--",
                *argv,
            ]
        case PostgresUser.OTHER:
            # A change of the user id clears the signal at the parent's death, so setpriv sets it again.
            ids = [
                f"--reuid={_spare_id()}",
                f"--regid={_spare_id()}",
                "--clear-groups",
                f"--pdeathsig={death_signal}",
            ]
            return ["setpriv", *ids, f"--inh-caps={_CAPS}", f"--ambient-caps={_CAPS}", "--", *argv]


def give(each: PostgresUser, directory: Path) -> None:
    """Make the user of this kind the owner of the directory and everything in it. Do nothing if that user owns the directory already."""
    owner = _spare_id() if each is PostgresUser.OTHER else os.geteuid()
    if directory.stat().st_uid == owner:
        return
    for root, directories, files in os.walk(directory):
        for name in (*directories, *files):
            os.chown(Path(root) / name, owner, owner, follow_symlinks=False)
    os.chown(directory, owner, owner)  # the root last: if it has the owner, all below it has


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
