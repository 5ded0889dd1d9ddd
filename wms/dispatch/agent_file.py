"""The job agent as a single Python file. A dispatcher sends it along with pilots, so that nodes need Python but no installation of wms."""

import contextlib
import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from wms.errors import Rejected

SHARED = ".agent"
"""The name of the directory with copies of agent files, in the directory that also holds those of pilots."""


class AgentFile(NamedTuple):
    """The path of a file that holds a job agent, built by `python -m deploy.agent_file`, and the name of the Python command on the nodes."""

    path: Path
    python: str = "python3"

    def check(self) -> None:
        """Raise Rejected if the file cannot be read."""
        if not os.access(self.path, os.R_OK) or not self.path.is_file():
            raise Rejected(
                "CONFIG_INVALID",
                f"no file with a job agent can be read at {self.path}",
                "`python -m deploy.agent_file FILE` builds one",
            )

    @property
    def argv(self) -> list[str]:
        """The command line that starts the agent on a node. The file must be in the directory where the pilot starts, under its own name."""
        return [self.python, "-I", self.path.name]

    def shared_argv(self, directory: Path) -> list[str]:
        """Copy the file into a directory that the nodes share, unless it is there, and return the command line that starts the agent from it.

        The copy has the file's digest in its name, so pilots that were sent earlier keep the version they were sent with. The call blocks.
        Raise Rejected if the file cannot be read or copied.
        """
        self.check()
        try:
            return [self.python, "-I", str(self._copied(directory.absolute() / SHARED))]
        except OSError as error:
            raise Rejected("CONFIG_INVALID", f"{self.path} cannot be copied for pilots: {error}") from None

    def _copied(self, to: Path) -> Path:
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        copy = to / f"{digest[:32]}.pyz"
        if not copy.exists():
            to.mkdir(parents=True, mode=0o700, exist_ok=True)
            aside = to / f"{copy.name}.{secrets.token_hex(4)}"
            with contextlib.ExitStack() as undo:
                undo.callback(aside.unlink, missing_ok=True)
                shutil.copyfile(self.path, aside)
                aside.replace(copy)
        return copy
