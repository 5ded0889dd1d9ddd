"""A batch system's command line tools: run with an environment of ours, within a time, without waiting in the way of others."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from wms.errors import Unavailable, shown

TOOL_SECONDS = 60.0


class Said(NamedTuple):
    """How a tool ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """What it said when it failed, on one line."""
        return shown(" ".join((self.err or self.out).split()), 300) or f"exit code {self.code}"


class Tools:
    """Runs a middleware's tools, some at a time."""

    def __init__(self, environment: Mapping[str, str], *, at_once: int = 4) -> None:
        self._environment = dict(environment)
        self._turns = asyncio.Semaphore(at_once)

    async def run(self, *argv: str, text: str = "", within: float = TOOL_SECONDS) -> Said:
        """Run a tool with `text` as its input. Raises Unavailable if it cannot be run or does not end in time."""
        async with self._turns:
            return await self._run(argv, text, within)

    async def ask(self, *argv: str, text: str = "") -> str:
        """Return what a tool printed. Raises Unavailable if it failed, too."""
        said = await self.run(*argv, text=text)
        if said.code != 0:
            raise Unavailable(f"{argv[0]}: {said.complaint}")
        return said.out

    async def _run(self, argv: tuple[str, ...], text: str, within: float) -> Said:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, env=self._environment, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise Unavailable(f"{argv[0]} cannot be run: {error.strerror}") from None
        try:
            async with asyncio.timeout(within):
                out, err = await process.communicate(text.encode())
        except TimeoutError:
            raise Unavailable(f"{argv[0]} has not ended within {within:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Said(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
