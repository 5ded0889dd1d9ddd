"""The confinement of pilots on this machine: what one sees and may write, and as which account it runs.

`services.job_agent.confinement` makes it. A dispatcher starts pilots through that program.
"""

import os
import sys
from pathlib import Path
from typing import Final, Literal

import msgspec

import wms

FIRST_ID: Final = 1_878_982_656
IDS: Final = 65_536
"""The first user and group id of pilots that root starts, and how many they are: the last of those that systemd keeps for containers."""
UNCONFINED: Final = "the pilot is not confined: "
"""How the line begins that tells why a pilot is not confined, in the mode `auto`."""
SECRETS: Final = (".ssh", ".gnupg", ".globus", ".aws", ".kube", ".docker", ".arc")
"""Names of directories in a user's home that hold keys or credentials."""


Mode = Literal["auto", "required", "none"]


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """How pilots on this machine are confined.

    With the mode `auto` a pilot runs without if the kernel forbids it, with `required` none does then; with `none` they never are.
    """

    mode: Mode = "none"
    hidden: tuple[str, ...] = ()
    """Directories that pilots see as empty, but for what is shown of them."""
    shown: tuple[str, ...] = ()
    """Directories and files that pilots can read wherever they are: their programs."""
    shared: tuple[str, ...] = ()
    """Directories in which pilots may write, as far as their account may: those of files by URL."""
    lifeline: str = ""
    """A lock file. Pilots are killed once no process holds its lock. Empty: none."""

    @property
    def owner(self) -> int | None:
        """The user and group id of confined pilots, as the machine sees it; None: those of this process."""
        return FIRST_ID if self.mode != "none" and os.geteuid() == 0 else None


class OwnConfinement(Confinement, frozen=True, kw_only=True):
    """The confinement of one pilot."""

    own: str
    """The pilot's own directory, in which it starts and may write."""


def own_programs() -> tuple[str, ...]:
    """Return the directories with this process's Python and this program, which a pilot needs in its view."""
    return sys.prefix, sys.base_prefix, str(Path(wms.__file__).parents[1])
