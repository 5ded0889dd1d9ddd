"""The job agent as one file: a dispatcher sends it with its pilots, so that their nodes need a Python and nothing else of ours."""

import contextlib
import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from wms.errors import Rejected

SHARED = ".agent"
"""The directory, among those of pilots, with copies of agents' files."""


class AgentFile(NamedTuple):
    """A file that holds a job agent, as `python -m deploy.agent_file` builds it, and the command for Python on the nodes."""

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
        """The command line for a node where the file lies, under its own name, in the directory in which the pilot starts."""
        return [self.python, "-I", self.path.name]

    def shared_argv(self, directory: Path) -> list[str]:
        """Copy the file below a directory that the nodes share, if it is not there, and return the command line for them. Blocking.

        The copy has the digest in its name: pilots that were sent before keep the file with which they were sent. Raise Rejected
        if the file cannot be read or copied.
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
