"""A payload's place on disk: its directories, made, filled, read for outputs, and removed."""

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

import msgspec

from services.job_agent.payload.output_capture import Captured
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.usage_sampling import disk_bytes
from wms.errors import Rejected
from wms.ids import Epoch, JobId
from wms.jobdesc.description import JobDescription
from wms.transfer import SandboxStore, Selection, UnmatchedFiles, download, left_behind, select

WORK, SCRATCH = "work", "tmp"
STDOUT, STDERR = "stdout.txt", "stderr.txt"
TAIL_CHARACTERS = 4_096
REMOVE_SECONDS = 600.0


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload left: what its patterns chose, its outputs, and the disk it held."""

    selection: Selection
    left: UnmatchedFiles
    printed: dict[str, Path | bytes]
    stdout_tail: str
    stderr_tail: str
    disk_bytes: int


class Workdir:
    """`<root>/<job>.<epoch>/`: `work` is where the payload runs, `tmp` its scratch; what it prints is kept beside them.

    Outputs lie outside `work`, so that a payload finds only its own files there, and printing costs it no disk.
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
    ) -> None:
        self.directory = root / f"{job_id}.{epoch}"
        self.work = self.directory / WORK
        self.scratch = self.directory / SCRATCH
        self._spares = spares
        self._owner = owner
        self._inputs: dict[str, int] = {}
        """When each file of the inputs was changed last."""
        self.stdout = Captured(self.directory / STDOUT, description.stdout_limit)
        self.stderr = Captured(self.directory / STDERR, description.stderr_limit)

    @property
    def measured(self) -> tuple[Path, ...]:
        """The directories whose content is held against the disk limit."""
        return (self.work, self.scratch)

    def disk_bytes(self) -> int:
        """Return what it holds of the disk; blocking. What is printed costs nothing up to what is kept of it."""
        beside = 0
        with contextlib.suppress(OSError):
            for entry in self.directory.iterdir():
                if entry not in self.measured:
                    beside += entry.lstat().st_blocks * 512 + disk_bytes([entry])
        kept = self.stdout.most_bytes + self.stderr.most_bytes
        return disk_bytes(self.measured) + max(0, beside - kept)

    async def prepare(self, store: SandboxStore, description: JobDescription) -> str:
        """Make the directories, unpack the input sandboxes in their order, and return the program to execute.

        Raises OSError when the node's disk fails, Rejected or Unavailable as `download` does.
        """
        if not description.input_sandbox:
            return await asyncio.to_thread(self._make, description.executable)
        await asyncio.to_thread(self._make, description.executable)
        for sandbox in description.input_sandbox:
            to = self.work / sandbox.directory
            if sandbox.directory:
                await asyncio.to_thread(_make_directory, to)
            await download(store, sandbox.sha256, to, size=sandbox.size)
        return await asyncio.to_thread(self._filled, description.executable)

    def harvest(self, patterns: tuple[str, ...]) -> Harvest:
        """Return what there is to keep; blocking. Raises Rejected for a pattern that leads out."""
        selection = _without_printed(select(self.work, patterns) if patterns else Selection(files={}))
        return Harvest(
            selection=selection,
            left=left_behind(self.work, selection.files, self._inputs),
            printed={STDOUT: self.stdout.finish() or b"", STDERR: self.stderr.finish() or b""},
            stdout_tail=self.stdout.text(TAIL_CHARACTERS),
            stderr_tail=self.stderr.text(TAIL_CHARACTERS),
            disk_bytes=self.disk_bytes(),
        )

    def remove(self, *, spare: bool = False) -> None:
        """Remove all of it, whatever modes the payload gave it, or spare it if nothing was done to it; blocking."""
        if not (spare and self._spares.keep(self.directory)):
            self._remove()

    def _program(self, executable: str) -> str:
        """Return what to execute: a file of the job's own, made executable, or else the name as it is."""
        name = Path(executable)
        if name.is_absolute() or ".." in name.parts:
            return executable
        path = self.work / name
        try:
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                path.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXUSR)
                return str(path)
        except (OSError, ValueError):
            pass  # it is told better when it is started
        return executable

    def _filled(self, executable: str) -> str:
        program = self._program(executable)
        found = (path for path in self.work.rglob("*") if path.is_file() and not path.is_symlink())
        self._inputs = {str(path.relative_to(self.work)): path.lstat().st_mtime_ns for path in found}
        if self._owner is not None:
            for parent, directories, files in os.walk(self.work):
                for name in (*directories, *files):
                    os.chown(Path(parent, name), *self._owner, follow_symlinks=False)
        return program

    def _make(self, executable: str) -> str:
        if self.directory.exists():
            self._remove()  # of an agent of the same name that died
        self._spares.make(self.directory)
        if self._owner is not None:
            for path in self.measured:
                os.chown(path, *self._owner)
        return self._program(executable)

    def _remove(self) -> None:
        # Python's own goes no deeper than its stack, and payloads may.
        with contextlib.suppress(RecursionError):
            shutil.rmtree(self.directory, ignore_errors=True)
        if self.directory.exists():
            _run("chmod", "-R", "u+rwX", str(self.directory))
            _run("rm", "-rf", "--", str(self.directory))


def _make_directory(path: Path) -> None:
    """Make the directory of an input; Rejected if an earlier input left something else there."""
    try:
        path.mkdir(mode=0o755, exist_ok=True)
    except FileExistsError:
        raise Rejected("SANDBOX_UNSAFE", f"an input has a file of the name {path.name}") from None


def _run(*argv: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=REMOVE_SECONDS
        )


def _without_printed(selection: Selection) -> Selection:
    """Leave out files whose names are those of what was printed, and say so."""
    taken = [name for name in selection.files if name.split("/")[0] in (STDOUT, STDERR)]
    if not taken:
        return selection
    return msgspec.structs.replace(
        selection,
        files={name: path for name, path in selection.files.items() if name not in taken},
        refused=(*selection.refused, *(f"{name}: the name of what was printed" for name in taken)),
    )
