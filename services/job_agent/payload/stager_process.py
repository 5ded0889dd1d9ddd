"""The stager of one payload as the agent starts, asks and ends it: before the payload starts, after its end, and to delete its files."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.process_control import NotStarted, Process
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.spawn_order import stager_order
from services.job_agent.payload.stager_link import StagerLink
from services.job_agent.payload.workdir import Workdir
from services.job_agent.payload.workplace import Workplace
from wms.errors import Unavailable
from wms.ids import AttemptId

P = ParamSpec("P")
T = TypeVar("T")
CLEAR_SECONDS: Final = 600.0
"""Seconds within which a payload's files must be deleted. After that they stay."""


class StagerProcess:
    """The stager of one payload, started when it is first needed. It may be ended and started again."""

    def __init__(
        self, workplace: Workplace, place: Workdir, attempt_id: AttemptId, limits: PayloadLimits
    ) -> None:
        self._at = workplace
        self._place = place
        self._attempt_id = attempt_id
        self._limits = limits
        self._process: Process | None = None
        self._link: StagerLink | None = None
        self._killed = False

    async def opened(self, deadline: float | None) -> StagerLink:
        """Return the link to the stager, which is started if it does not run. It is killed at `deadline`, in seconds since boot.

        Raise Unavailable if it cannot be started.
        """
        if self._link is None or self._process is None or self._process.ended.done():
            await self.close()
            self._process, self._link = await self._started(self._place.directory, deadline)
            if self._killed:
                self._process.end()
        return self._link

    async def run(self, call: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> T:
        """Run a blocking call of the link in a thread. Return its result or raise its error."""
        return await self._at.stagers.run(call, *arguments, **named)

    def kill(self) -> None:
        """End the stager at once, now or as soon as it is started. Its running request raises Unavailable."""
        self._killed = True
        if self._process is not None:
            self._process.end()

    def live_until(self, boot_seconds: float | None) -> None:
        """Set the time at which the stager is killed, in seconds since boot; None: never."""
        if self._process is not None:
            self._process.live_until(boot_seconds)

    async def clear(self) -> bool:
        """Delete the payload's files, and those of an earlier payload whose agent died. Return whether the directories are as they were made.

        Errors are not raised.
        """
        self._killed = False
        until = now() + CLEAR_SECONDS
        if self._place.stale is not None:
            await self._cleared(self._place.stale, until)
            await asyncio.to_thread(self._place.remove_stale)
        self.live_until(until)
        try:
            link = await self.opened(until)
            return await self.run(link.clear)
        except (Unavailable, OSError):
            return False

    async def close(self) -> None:
        """Let the stager end, and wait until it has."""
        if self._link is not None:
            self._link.close()
        if self._process is not None:
            await asyncio.shield(self._process.ended)
        self._link = self._process = None

    async def _cleared(self, directory: Path, until: float) -> None:
        with contextlib.suppress(Unavailable, OSError):
            process, link = await self._started(directory, until)
            try:
                await self.run(link.clear)
            finally:
                link.close()
                await asyncio.shield(process.ended)

    async def _started(self, directory: Path, deadline: float | None) -> tuple[Process, StagerLink]:
        order = stager_order(
            directory,
            self._limits,
            deadline=deadline,
            cgroup=self._at.cgroup(self._attempt_id, in_image=False),
        )
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await self._at.processes.spawn(order, theirs)
        except NotStarted as error:
            ours.close()
            raise Unavailable(f"no stager can be started: {error}") from None
        except BaseException:
            ours.close()
            raise
        owner = None if self._at.owner is None else self._at.owner[0]
        return process, StagerLink(ours, self._place.device(), owner)
