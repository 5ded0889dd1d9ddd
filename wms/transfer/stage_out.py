"""Stage-out: delivers the output files of a job to their targets, several at a time, while its attempt holds its lease."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from wms.errors import Rejected
from wms.jobdesc.staged_file import OutputFile
from wms.transfer.delivering import Deliverer
from wms.transfer.fetching import Transferred
from wms.transfer.mover import OutgoingFile
from wms.transfer.stage_in import TransferProgress, TransferSite, within
from wms.transfer.transfer_limits import TOO_LARGE

NOT_THERE = "NO_OUTPUT"
"""The error code for an output that the payload did not write."""


class DeliveredOutputs(msgspec.Struct, frozen=True):
    """The outputs of one job that were delivered, and why optional ones were not."""

    transferred: tuple[Transferred, ...] = ()
    """One result for each output and each of its targets."""
    missed: tuple[str, ...] = ()
    """A sentence for each optional output that did not reach all of its targets."""


class StageOut:
    """Delivers the outputs of one attempt of a job. `progress` tells how far that is."""

    def __init__(
        self, site: TransferSite, outputs: tuple[OutputFile, ...], mark: str, may_commit: Callable[[], bool]
    ) -> None:
        """Take the outputs to deliver. `mark` is a suffix for temporary names that no other attempt uses.

        `may_commit` returns whether the attempt still holds its lease.
        """
        self.progress = TransferProgress(files=sum(len(each.targets) for each in outputs))
        self._outputs = outputs
        self._mark = mark
        self._may_commit = may_commit
        self._limits = site.limits
        self._deliverer = Deliverer(site.movers, site.limits, site.rng, self._moved)
        self._missed: list[str] = []

    async def run(self, files: Mapping[str, Path]) -> DeliveredOutputs:
        """Put each output to its targets. `files` are the files that the payload wrote, by the name of the output.

        Raise Rejected for the first output that is not optional and is missing or cannot be put. Files that were put before stay.
        """
        sizes = {name: path.stat().st_size for name, path in files.items()}
        self.progress.bytes_total = sum(sizes.get(each.name, 0) * len(each.targets) for each in self._outputs)
        if self.progress.bytes_total > self._limits.job_bytes:
            raise Rejected(
                TOO_LARGE,
                f"the outputs take {self.progress.bytes_total:,} bytes of {self._limits.job_bytes:,} allowed",
            )
        done = await within(self._limits, (self._deliver(each, files, sizes) for each in self._outputs))
        return DeliveredOutputs(tuple(one for each in done for one in each), tuple(self._missed))

    async def _deliver(
        self, wanted: OutputFile, files: Mapping[str, Path], sizes: Mapping[str, int]
    ) -> list[Transferred]:
        try:
            source = _there(files, wanted.name)
            sending = OutgoingFile(source, sizes[wanted.name], self._mark, self._may_commit)
            done = await self._deliverer.deliver(wanted.name, sending, wanted.targets)
        except Rejected as error:
            if not wanted.optional or not self._may_commit():
                raise
            self._missed.append(error.message)
            return []
        self.progress.files_done += len(done)
        return done

    def _moved(self, count: int) -> None:
        self.progress.bytes_done += count


def _there(files: Mapping[str, Path], name: str) -> Path:
    if name not in files:
        raise Rejected(NOT_THERE, f"the output {name!r} is not there")
    return files[name]
