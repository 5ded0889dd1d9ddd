"""Runs the command-line tools of a batch system, such as `squeue` or `qstat`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from wms.dispatch.commands import ToolOutput, Tools

INHERITED = ("PATH", "HOME", "TZ")
"""The environment variables of this process that the tools of every batch system inherit."""


class BatchTools:
    """The command-line tools of one batch system, in `directory`, or on the PATH if that is empty.

    They get the variables of `environment`, and from this process only those in `inherited`.
    """

    def __init__(
        self, directory: str, environment: Mapping[str, str], inherited: Sequence[str] = INHERITED
    ) -> None:
        self._directory = directory
        own = {name: os.environ[name] for name in inherited if name in os.environ}
        self._tools = Tools(own | {"LC_ALL": "C"} | dict(environment))

    async def ask(self, name: str, *arguments: str) -> ToolOutput:
        """Run the tool `name` with these arguments and return its output. Raise Unavailable if it cannot run, fails or takes too long."""
        program = str(Path(self._directory) / name) if self._directory else name
        return await self._tools.ask(program, *arguments)
