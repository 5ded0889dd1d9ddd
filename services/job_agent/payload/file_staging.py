"""Transfers the files that a job names by URL: inputs before its payload starts, outputs after it has ended.

The transfers are broken off when the job is killed or loses its lease.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar

from services.job_agent.payload.shepherd import now
from wms.bounds import NAME_LENGTH
from wms.errors import Rejected, Unavailable
from wms.ids import AttemptId
from wms.job.reasons import HOLDING, Code, Reason
from wms.jobdesc.description import JobDescription
from wms.messages.reports import TRANSFERS_LIMIT, HostTransfer, StagingReport
from wms.transfer.fetching import Transferred
from wms.transfer.part_file import LocalDiskError
from wms.transfer.stage_in import StageIn, TransferProgress, TransferSite
from wms.transfer.stage_out import StageOut

WATCH_SECONDS = 0.2
"""The longest time in seconds that transfers go on after their job was killed or lost its lease; then they are cancelled."""
T = TypeVar("T")
Part: TypeAlias = Literal["stage_in", "stage_out"]


class FileStaging:
    """The transfers of the files that one attempt names by URL: inputs (stage-in) and outputs (stage-out)."""

    def __init__(
        self,
        site: TransferSite,
        attempt_id: AttemptId,
        description: JobDescription,
        disk_bytes: int | None,
        stopped: Callable[[], Reason | None],
    ) -> None:
        """Prepare the transfers of one attempt. `site` has the site's rules and settings for transfers.

        `disk_bytes` is the limit for all inputs together; None: no limit. `stopped` returns why the attempt must end, or None
        while it may go on.
        """
        self._stopped = stopped
        self._attempt_id = attempt_id
        self._parallel = site.limits.parallel
        self._names = [each.name for each in description.outputs]
        self._stage_in = StageIn(site, description.inputs, disk_bytes)
        mark = f".{attempt_id.job_id}.{attempt_id.epoch}.part"
        self._stage_out = StageOut(site, description.outputs, mark, lambda: stopped() is None)
        self.progress: TransferProgress | None = None
        """The files and bytes that the running transfers have moved and have to move. None while none run."""
        self.fetched: tuple[Transferred, ...] = ()
        self.delivered: tuple[Transferred, ...] = ()
        self.missed: tuple[str, ...] = ()
        """For each optional output that was not sent, a text that says why."""

    async def fetch(self, incoming: Path) -> None:
        """Fetch the inputs into the directory `incoming`, which is the agent's.

        Raise StoppedError if the attempt must end, Rejected if an input cannot be fetched, OSError if the node's disk fails.
        """
        try:
            self.fetched = tuple(await self._run(self._stage_in.run(incoming), self._stage_in.progress))
        except LocalDiskError as error:
            raise OSError(str(error)) from None

    async def deliver(
        self, take: Callable[[Iterable[str]], Awaitable[Mapping[str, BinaryIO]]]
    ) -> Reason | None:
        """Send the outputs to their URLs. Return the reason if the attempt has failed by that, else None. Errors are not raised.

        `take` is called with the names of the outputs. It returns those that exist, opened, and raises Rejected for a file
        that must not be sent.
        """
        if not self._names:
            return None
        try:
            files = await take(self._names)
            with contextlib.ExitStack() as opened:
                for each in files.values():
                    opened.enter_context(each)
                paths = {name: _path_of(each) for name, each in files.items()}
                done = await self._run(self._stage_out.run(paths), self._stage_out.progress)
        except StoppedError as stopped:
            return stopped.reason
        except Rejected as error:
            return self._stopped() or Reason(Code.OUTPUT_FAILED, str(error))
        except (OSError, Unavailable) as error:
            return Reason(Code.AGENT_ERROR, f"the outputs cannot be read: {error}")
        self.delivered, self.missed = done.transferred, done.missed
        return None

    @property
    def measured(self) -> tuple[HostTransfer, ...]:
        """For each storage host the files moved, their bytes and seconds: first those of stage-in, then of stage-out.

        In each of the two, the host with the most bytes is first.
        """
        return (
            *measured_hosts("stage_in", self.fetched, self._parallel),
            *measured_hosts("stage_out", self.delivered, self._parallel),
        )

    @property
    def report(self) -> StagingReport | None:
        """The progress of the running transfers, for a report of the pilot to the job manager. None while none run."""
        found = self.progress
        if found is None:
            return None
        return StagingReport(
            job_id=self._attempt_id.job_id,
            epoch=self._attempt_id.epoch,
            part="stage_in" if found is self._stage_in.progress else "stage_out",
            files=found.files,
            files_done=found.files_done,
            bytes_done=found.bytes_done,
            bytes_total=found.bytes_total,
        )

    async def _run(self, transfers: Coroutine[Any, Any, T], progress: TransferProgress) -> T:
        """Run the transfers and return their result. `progress` counts what they have moved.

        Raise StoppedError within WATCH_SECONDS after the attempt must end; the transfers are then cancelled.
        """
        task = asyncio.create_task(transfers)
        self.progress = progress
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=WATCH_SECONDS)
                if not task.done() and (reason := self._stopped()):
                    raise StoppedError(reason)
            return task.result()
        finally:
            self.progress = None
            await _cancelled(task)


class StoppedError(Exception):
    """The transfers of an attempt were broken off, because the attempt must end. `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


def _path_of(file: BinaryIO) -> Path:
    """Return a path by which this process and its children reach an opened file, whatever becomes of its name."""
    return Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


def measured_hosts(part: Part, moved: Sequence[Transferred], parallel: int) -> list[HostTransfer]:
    """Return for each storage host the files moved, their bytes and the seconds that they took together, most bytes first.

    `part` says whether they are inputs or outputs. Up to `parallel` files moved at a time. So the seconds are the sum of the
    files' times, divided by the number of files at a time, but at least the longest of them.
    """
    hosts: dict[str, list[Transferred]] = {}
    for each in moved:
        hosts.setdefault(each.host, []).append(each)
    found = [
        HostTransfer(
            part=part,
            host=host[:NAME_LENGTH],
            files=len(files),
            size=sum(each.size for each in files),
            seconds=max(sum(times := [each.seconds for each in files]) / min(parallel, len(files)), *times),
        )
        for host, files in hosts.items()
    ]
    return sorted(found, key=lambda each: -each.size)[: TRANSFERS_LIMIT // 2]


def input_fault(error: StoppedError | Rejected) -> Reason:
    """Return the reason to report for a job whose inputs could not be fetched.

    With some reasons the job is held (kept out of the queue until its user releases it), since only its user can remedy them.
    """
    if isinstance(error, StoppedError):
        return error.reason
    told = (*HOLDING, Code.DISK_LIMIT)
    code = next((each for each in told if each == error.code), Code.INPUT_FAILED)
    return Reason(code, error.message if code in told else str(error))


def lease_over(deadline: float | None) -> Reason | None:
    """Return the reason LEASE_EXPIRED if the lease has ended, else None.

    `deadline` is the end of the lease in seconds since boot, as `shepherd.now` returns them. None: no lease limits the job.
    """
    if deadline is None or now() < deadline:
        return None
    return Reason(Code.LEASE_EXPIRED, "its lease was not renewed in time")
