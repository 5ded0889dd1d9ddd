"""The tools of a batch system, as the advertiser runs them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from wms.dispatch.commands import ToolOutput, Tools

INHERITED = ("PATH", "HOME", "TZ")
"""Variables that all such tools have from this process."""


class BatchTools:
    """Tools in a directory, or on the PATH where that is empty; of this process's environment they see what is named."""

    def __init__(
        self, directory: str, environment: Mapping[str, str], inherited: Sequence[str] = INHERITED
    ) -> None:
        self._directory = directory
        own = {name: os.environ[name] for name in inherited if name in os.environ}
        self._tools = Tools(own | {"LC_ALL": "C"} | dict(environment))

    async def ask(self, name: str, *arguments: str) -> ToolOutput:
        """Run a tool that must not fail; raises Unavailable."""
        program = str(Path(self._directory) / name) if self._directory else name
        return await self._tools.ask(program, *arguments)
