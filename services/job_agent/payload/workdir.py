"""Manages the directories of one payload on disk: makes them, unpacks its inputs, searches them for outputs, removes them."""

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from services.job_agent.payload import outgoing_files
from services.job_agent.payload.output_capture import Captured
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.usage_sampling import disk_bytes
from wms.errors import Rejected
from wms.ids import Epoch, JobId
from wms.jobdesc.description import JobDescription
from wms.transfer import Objects, SelectedFiles, UnmatchedFiles, download, left_behind, select

WORK, SCRATCH, OUTGOING = "work", "tmp", "outgoing"
STDOUT, STDERR = "stdout.txt", "stderr.txt"
TAIL_CHARACTERS = 4_096
REMOVE_SECONDS = 600.0


class PayloadFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a payload left: those that output patterns chose, all others, and what it printed.

    `left` has the others. `printed` has the captured standard output and error by name. `disk_bytes` is what its directories
    take on disk.
    """

    selection: SelectedFiles
    left: UnmatchedFiles
    printed: dict[str, Path | bytes]
    stdout_tail: str
    stderr_tail: str
    disk_bytes: int


class Workdir:
    """The directory `<root>/<job>.<epoch>/` of a payload, with the subdirectories `work`, where it runs, and `tmp`, for scratch files.

    The captured standard output and error lie beside `work`. So the payload finds only its own files in `work`, and what it
    prints does not count against its disk limit. `owner` is the user and group of its files; None: the agent's. `given` are
    texts of secret files for `tmp`, by name.
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
        given: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._given = given
        self.directory = root / f"{job_id}.{epoch}"
        self.work = self.directory / WORK
        self.scratch = self.directory / SCRATCH
        self._spares = spares
        self._owner = owner
        self._inputs: dict[str, int] = {}
        """The modification time of each input file in nanoseconds, by its path relative to `work`. It shows which inputs the payload changed."""
        self.stdout = Captured(self.directory / STDOUT, description.stdout_limit)
        self.stderr = Captured(self.directory / STDERR, description.stderr_limit)

    @property
    def measured(self) -> tuple[Path, ...]:
        """The directories `work` and `tmp`, whose content counts against the payload's disk limit."""
        return (self.work, self.scratch)

    def disk_bytes(self) -> int:
        """Return how many bytes on disk count against the payload's disk limit. Blocking.

        Captured output counts only if it takes more than its own limits allow.
        """
        beside = 0
        with contextlib.suppress(OSError):
            for entry in self.directory.iterdir():
                if entry not in self.measured:
                    beside += entry.lstat().st_blocks * 512 + disk_bytes([entry])
        kept = self.stdout.most_bytes + self.stderr.most_bytes
        return disk_bytes(self.measured) + max(0, beside - kept)

    async def prepare(
        self, store: Objects, description: JobDescription, stage_in: Callable[[Path], Awaitable[object]]
    ) -> str:
        """Make the directories, unpack the input sandboxes and fetch the input files. Return the path or name of the program to execute.

        `stage_in` is called with `work` to fetch the inputs that the job names by URL; its errors are raised. Raise OSError
        if the node's disk fails, Rejected if a sandbox cannot be unpacked, Unavailable if the store cannot be reached.
        """
        if not description.input_sandbox and not description.inputs:
            return await asyncio.to_thread(self._make, description.executable)
        await asyncio.to_thread(self._make, description.executable)
        for sandbox in description.input_sandbox:
            to = self.work / sandbox.directory
            if sandbox.directory:
                await asyncio.to_thread(_make_directory, to)
            await download(store, sandbox.sha256, to, size=sandbox.size)
        if description.inputs:
            await stage_in(self.work)
        return await asyncio.to_thread(self._filled, description.executable)

    def check_stdin(self, name: str) -> None:
        """Raise Rejected unless `name`, the standard input that the job wants, is a file in `work`. An empty name is accepted. Blocking."""
        if name and not (os.path.realpath(self.work / name) + "/").startswith(
            f"{os.path.realpath(self.work)}/"
        ):
            raise Rejected("BAD_STDIN", f"the standard input {name!r} lies outside the job's directory")
        if name and not (self.work / name).is_file():
            raise Rejected("NO_STDIN", f"the standard input {name!r} is not among the job's inputs")

    def harvest(self, patterns: tuple[str, ...]) -> PayloadFiles:
        """Return the files that the payload left, and which of them `patterns` choose as outputs. Blocking.

        Raise Rejected for a pattern that leads out of `work`, OSError if the node's disk fails.
        """
        selection = _without_printed(select(self.work, patterns) if patterns else SelectedFiles(files={}))
        return PayloadFiles(
            selection=selection,
            left=left_behind(self.work, selection.files, self._inputs),
            printed={STDOUT: self.stdout.finish() or b"", STDERR: self.stderr.finish() or b""},
            stdout_tail=self.stdout.text(TAIL_CHARACTERS),
            stderr_tail=self.stderr.text(TAIL_CHARACTERS),
            disk_bytes=self.disk_bytes(),
        )

    def name_printed(self, description: JobDescription) -> None:
        """Make the captured standard output and error also appear in `work` under the names in the description. Blocking.

        A file that has such a name already is not replaced.
        """
        for name, captured in ((description.stdout, self.stdout), (description.stderr, self.stderr)):
            if name:
                outgoing_files.name_output(self.work, name, captured.finish(), self._owner)

    def outgoing(self, names: Iterable[str]) -> dict[str, Path]:
        """Make hard links to the named output files in a directory that the payload cannot reach. Return the new paths by name. Blocking.

        Missing files are left out. Raise Rejected for a file that must not be sent, OSError if the node's disk fails.
        """
        owner = None if self._owner is None else self._owner[0]
        return outgoing_files.link_out(self.work, names, self.directory / OUTGOING, owner)

    def remove(self, *, spare: bool = False) -> None:
        """Delete the directory, whatever file modes the payload set in it. Blocking.

        If `spare` is True and the payload changed nothing in it, it may be kept for a later payload instead.
        """
        for name in self._given:
            with contextlib.suppress(OSError):
                (self.scratch / name).unlink()
        if not (spare and self._spares.keep(self.directory)):
            self._remove()

    def _program(self, executable: str) -> str:
        """Return the program to execute. If `executable` names a file in `work`, make that executable and return its path.

        Otherwise return the name unchanged.
        """
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
            pass  # the attempt to start it gives a better error
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
        for name, text in self._given.items():
            self._give(self.scratch / name, text)
        return self._program(executable)

    def _give(self, path: Path, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            if self._owner is not None:
                os.fchown(descriptor, *self._owner)

    def _remove(self) -> None:
        # Python's rmtree recurses, and payloads may nest directories deeper than its stack.
        with contextlib.suppress(RecursionError):
            shutil.rmtree(self.directory, ignore_errors=True)
        if self.directory.exists():
            _run("chmod", "-R", "u+rwX", str(self.directory))
            _run("rm", "-rf", "--", str(self.directory))


def _make_directory(path: Path) -> None:
    """Make the directory of an input sandbox, if it does not exist. Raise Rejected if there is a file of that name."""
    try:
        path.mkdir(mode=0o755, exist_ok=True)
    except FileExistsError:
        raise Rejected("SANDBOX_UNSAFE", f"an input has a file of the name {path.name}") from None


def _run(*argv: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=REMOVE_SECONDS
        )


def _without_printed(selection: SelectedFiles) -> SelectedFiles:
    """Return the chosen files without those named like the captured stdout or stderr. Those are added to the refused files."""
    taken = [name for name in selection.files if name.split("/")[0] in (STDOUT, STDERR)]
    if not taken:
        return selection
    return msgspec.structs.replace(
        selection,
        files={name: path for name, path in selection.files.items() if name not in taken},
        refused=(*selection.refused, *(f"{name}: the name of what was printed" for name in taken)),
    )
