"""The base of dispatchers to batch systems whose tools run on this machine and whose nodes share a file system with it.

Each pilot has a directory on that file system with its configuration, its token (mode 0600), its output, and at the end its exit code. So
the outcome is known even if the batch system has forgotten the job. A subclass calls the batch system's tools to submit, list and end jobs.
"""

import asyncio
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from wms.dispatch.commands import Tools
from wms.dispatch.direct_script import direct_script
from wms.dispatch.pilot_directories import Places
from wms.dispatch.port import PilotOutput, PilotRequest, PilotSighting, batches, last_line, settled
from wms.dispatch.refusals import SubmitRefused
from wms.dispatch.script import pilot_script
from wms.dispatch.shared_directories import SharedDirectories
from wms.ids import PilotId
from wms.job.reasons import Code

NUMBERS_AT_ONCE = 500
"""How many jobs one command line names at most."""

State: TypeAlias = Literal["Waiting", "Running", "Done", "Failed", "Aborted"]


class BatchJob(NamedTuple):
    """A batch job as its batch system lists it. `state` is None if the job ended and the list does not say how."""

    number: str
    state: State | None
    reason: str = ""
    lost: Literal[Code.NODE_LOST] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self.state not in ("Waiting", "Running")


class BatchDispatcher(SharedDirectories, ABC):
    """Sends pilots as jobs of a batch system. Each job runs the command `agent` with `--config FILE`.

    The tools of the batch system get only `environment` as their environment. Pilots have their directories below `directory`.
    """

    system: str
    """The name of the batch system as messages to users show it."""

    def __init__(self, directory: Path, agent: Sequence[str], environment: Mapping[str, str]) -> None:
        self._places = Places(directory)
        self._agent = tuple(agent)
        self._tools = Tools(environment)

    @abstractmethod
    async def _submit(self, options: Sequence[str], script: Path) -> str:
        """Submit a script as a job with these options; return the job's number in the batch system.

        Raise SubmitRefused if the job was not taken, Unavailable if it is unknown whether it was.
        """

    @abstractmethod
    async def _jobs(self) -> dict[PilotId, BatchJob]:
        """Return the jobs that the batch system lists under this account, ended ones included, by pilot.

        Raise Unavailable if the batch system does not answer.
        """

    @abstractmethod
    async def _end(self, numbers: Sequence[str]) -> None:
        """Cancel the jobs with these numbers. Their processes first get SIGTERM, and are killed some time later."""

    @abstractmethod
    def _options(self, order: PilotRequest) -> list[str]:
        """Return the submit options for a pilot's job. Raise ValueError if the batch system cannot take such a request."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Submit pilots, and return the state of each. A pilot is left out if it is unknown whether its job was submitted."""
        return settled(await asyncio.gather(*map(self._send, orders), return_exceptions=True))

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of these pilots, from one list of all jobs of this account.

        For pilots that the batch system does not list, the exit codes in their directories count.
        """
        if not pilot_ids:
            return []
        jobs = await self._jobs()
        return [
            self._seen(each, jobs[each]) if each in jobs else self._left(each) or self._lost(each)
            for each in pilot_ids
        ]

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """Cancel the jobs of those of these pilots that are alive. Their job agents get SIGTERM, take no more jobs, and report before they end."""
        jobs = await self._jobs()
        found = [jobs[each] for each in pilot_ids if each in jobs]
        for some in batches([job.number for job in found if not job.is_over], NUMBERS_AT_ONCE):
            await self._end(some)

    async def alive(self) -> list[PilotId]:
        """Return the pilots that have not ended, by the jobs listed under this account, whoever submitted them."""
        return [name for name, job in (await self._jobs()).items() if not job.is_over]

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[PilotOutput]:
        """Return the end of each pilot's output, from its directory. Pilots without output are absent."""
        return await asyncio.to_thread(self._places.outputs, pilot_ids)

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove tokens and input files of these pilots, which have ended.

        The latest directories of ended pilots are kept for their logs. Older ones are removed, whether their pilots are named or not.
        """
        alive = frozenset(await self.alive())
        await asyncio.to_thread(self._places.forget, pilot_ids, alive.__contains__)

    # --- sending ----------------------------------------------------------------------------------

    async def _send(self, order: PilotRequest) -> PilotSighting:
        try:
            options = self._options(order)
            script = await asyncio.to_thread(self._laid_out, order)
        except (OSError, ValueError) as error:
            return PilotSighting(pilot_id=order.pilot_id, state="Failed", reason=f"not sent: {error}")
        try:
            number = await self._submit(options, script)
        except SubmitRefused as why:
            self._places.drop_token(order.pilot_id)
            return PilotSighting(pilot_id=order.pilot_id, state="Failed", reason=f"refused: {why}")
        return PilotSighting(pilot_id=order.pilot_id, state="Submitted", reference=number)

    def _laid_out(self, order: PilotRequest) -> Path:
        """Make a pilot's directory with its files; return the path of its script. Raise OSError if that fails or the directory exists."""
        place = self._places.make(order)
        path = place / "pilot.sh"
        path.write_text(self._script(order, place))
        return path

    def _script(self, order: PilotRequest, place: Path) -> str:
        if order.payload is not None:
            return direct_script(order.pilot_id, order.payload, place=shlex.quote(str(place)))
        files = {name: shlex.quote(str(place / name)) for name in ("config.toml", "token", "exit", "log")}
        return pilot_script(
            order,
            self._agent,
            config=files["config.toml"],
            token=files["token"],
            exit_file=files["exit"],
            log_file=files["log"],
        )

    # --- following --------------------------------------------------------------------------------

    def _seen(self, pilot_id: PilotId, job: BatchJob) -> PilotSighting:
        if job.state in ("Waiting", "Running"):
            return PilotSighting(pilot_id=pilot_id, state=job.state, reference=job.number, reason=job.reason)
        self._places.drop_token(pilot_id)
        # An exit code shows that it ended before its node was lost, or before it was cancelled.
        if (job.state is None or job.lost) and (left := self._left(pilot_id, job.number)) is not None:
            return left
        state = job.state or "Aborted"
        words = (job.reason, "" if state == "Done" else self._last_words(pilot_id))
        why = ": ".join(word for word in words if word)
        return PilotSighting(pilot_id=pilot_id, state=state, reference=job.number, reason=why, lost=job.lost)

    def _left(self, pilot_id: PilotId, number: str | None = None) -> PilotSighting | None:
        """Return how a pilot ended, by the exit code in its directory; None if there is no exit code. `number` is its job's number, if known."""
        try:
            code = int((self._places.of(pilot_id) / "exit").read_text())
        except (OSError, ValueError):
            return None
        self._places.drop_token(pilot_id)
        if code == 0:
            return PilotSighting(pilot_id=pilot_id, state="Done", reference=number)
        why = f"exit code {code}: {self._last_words(pilot_id)}".rstrip(": ")
        return PilotSighting(pilot_id=pilot_id, state="Failed", reference=number, reason=why)

    def _last_words(self, pilot_id: PilotId) -> str:
        return last_line(self._places.output(pilot_id)) or last_line(
            self._places.output(pilot_id, "batch.log")
        )

    def _lost(self, pilot_id: PilotId) -> PilotSighting:
        self._places.drop_token(pilot_id)
        why = f"{self.system} knows no such job"
        return PilotSighting(pilot_id=pilot_id, state="Aborted", reason=why, lost=Code.PILOT_FORGOTTEN)
