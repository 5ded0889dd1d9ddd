"""The command-line tools of a batch system."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from wms.dispatch.commands import ToolOutput, Tools

INHERITED = ("PATH", "HOME", "TZ")
"""Environment variables of this process that all such tools get."""


class BatchTools:
    """Tools in a directory, or on the PATH if it is empty. They get only the named environment variables of this process."""

    def __init__(
        self, directory: str, environment: Mapping[str, str], inherited: Sequence[str] = INHERITED
    ) -> None:
        self._directory = directory
        own = {name: os.environ[name] for name in inherited if name in os.environ}
        self._tools = Tools(own | {"LC_ALL": "C"} | dict(environment))

    async def ask(self, name: str, *arguments: str) -> ToolOutput:
        """Run a tool and return its output; raise Unavailable if it fails."""
        program = str(Path(self._directory) / name) if self._directory else name
        return await self._tools.ask(program, *arguments)
