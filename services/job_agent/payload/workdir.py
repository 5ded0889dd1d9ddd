"""Manages the directories of one payload on disk: makes them, has its inputs fetched, and removes them.

The agent makes, renames and removes the directories themselves. What is in `work` and `tmp` is the payload's, and only its
stager touches that.
"""

import contextlib
import os
import shutil
from pathlib import Path

from services.job_agent.payload.disk_usage import disk_bytes
from services.job_agent.payload.output_capture import Captured
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from wms.ids import Epoch, JobId
from wms.jobdesc.description import JobDescription

WORK, SCRATCH, INCOMING = "work", "tmp", "incoming"
STDOUT, STDERR = "stdout.txt", "stderr.txt"
TAIL_CHARACTERS = 4_096


class Workdir:
    """The directory `<root>/<job>.<epoch>/` of a payload, with the subdirectories `work`, where it runs, and `tmp`, for scratch files.

    The captured standard output and error lie beside `work`, and so does `incoming`, for inputs on their way: out of the
    payload's reach. So what it prints does not count against its disk limit. `owner` is the user and group of its files; None:
    the agent's. `job_owner` is the owner of the job.
    """

    def __init__(
        self,
        root: Path,
        job_id: JobId,
        epoch: Epoch,
        description: JobDescription,
        spares: SpareWorkdirs,
        *,
        owner: tuple[int, int] | None = None,
        job_owner: str = "",
    ) -> None:
        self.directory = root / f"{job_id}.{epoch}"
        self.work = self.directory / WORK
        self.scratch = self.directory / SCRATCH
        self.incoming = self.directory / INCOMING
        self._spares = spares
        self._owner = owner
        self._job_owner = job_owner
        self.stdout = Captured(self.directory / STDOUT, description.stdout_limit)
        self.stderr = Captured(self.directory / STDERR, description.stderr_limit)
        self.stale: Path | None = None
        """Where the directory is now that had this one's name before; None if none had."""

    @property
    def measured(self) -> tuple[Path, ...]:
        """The directories `work` and `tmp`, whose content counts against the payload's disk limit."""
        return (self.work, self.scratch)

    @property
    def printed(self) -> dict[str, Path | None]:
        """The captured standard output and error as files, by their names in an archive; None: nothing was printed."""
        return {STDOUT: self.stdout.finish(), STDERR: self.stderr.finish()}

    def disk_bytes(self, most: int) -> int:
        """Return how many bytes on disk count against the payload's disk limit; `most` or more if it is more. Blocking.

        Captured output counts only if it takes more than its own limits allow. Raise UncountableError if that is not known.
        """
        beside = 0
        with contextlib.suppress(OSError):
            for entry in self.directory.iterdir():
                if entry not in self.measured:
                    beside += entry.lstat().st_blocks * 512 + disk_bytes([entry], most)
        kept = self.stdout.most_bytes + self.stderr.most_bytes
        return disk_bytes(self.measured, most) + max(0, beside - kept)

    def make(self) -> None:
        """Make the directories. Raise OSError if the node's disk fails. Blocking."""
        if self.directory.exists():
            self.stale = self._spares.aside(self.directory)  # of an agent of the same name that died
        self._spares.make(self.directory, self._job_owner)
        if self._owner is not None:
            for path in self.measured:
                os.chown(path, *self._owner, follow_symlinks=False)

    def device(self) -> int:
        """Return the device number of the file system with the directories."""
        return self.directory.lstat().st_dev

    def remove_stale(self) -> None:
        """Delete the directory that had the name of this one, if its stager has cleared it. Blocking."""
        if self.stale is not None:
            self._spares.remove(self.stale)

    def remove(self, *, spare: bool = False) -> bool:
        """Delete the directory, if the payload's directories in it are empty; else return False. Blocking.

        If `spare` is True, they are as they were made, and it may be kept for a later payload of the same job owner instead.
        """
        with contextlib.suppress(OSError):
            for entry in self.directory.iterdir():
                if entry in self.measured:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
        if spare and self._spares.keep(self.directory, self._job_owner):
            return True
        return self._spares.remove(self.directory) or not self.directory.exists()
