"""Direct dispatch: a job itself is sent to its computing element in place of a pilot, for sites whose nodes have no network to the outside.

The sender holds the job's lease, and passes each renewal on by a file in the job's directory. The job's script waits for the first renewal
before it starts the program, and ends the program when the lease runs out. So the job never runs beside another attempt of it, even if its
sender has died.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from wms.ids import PilotId

LEASE, EXIT, ENDED, WORK = "lease", "exit", "ended", "work"
"""The names of files in a job's directory: its lease, its exit code, why it was ended, and the directory that it runs in."""
BEGAN, USAGE = "began", "usage"
"""The names of two files: when the job's program started; and its CPU time and the time of its end."""
STDOUT, STDERR = "stdout.txt", "stderr.txt"
SMALL_FILE = 1_000
"""How many bytes are read at most of a file that a job's script wrote."""
NEVER_BEGAN = 75
"""The exit code of a job whose program was not started, because its lease was not renewed in time."""


class StagedInput(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the middleware (ARC) fetches from a URL into a direct job's working directory before the job begins."""

    name: str
    """The file's path in the working directory."""
    url: str
    size: int | None = None
    """The size in bytes that the file must have; None: any."""
    checksum: str = ""
    """The checksum that the file must have, as `sha256:` or `md5:` and hexadecimal digits; empty: any."""
    executable: bool = False


class StagedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a direct job's working directory that the middleware (ARC) sends to a URL after the job has succeeded."""

    name: str
    """The file's path in the working directory."""
    url: str
    kept: bool = False
    """Whether the file is also of the job's output sandbox."""


class StagedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs and outputs of a direct job that the middleware moves from and to URLs."""

    inputs: tuple[StagedInput, ...] = ()
    outputs: tuple[StagedOutput, ...] = ()
    success_exit_codes: tuple[int, ...] = (0,)
    """The exit codes of the program with which the job has succeeded. After any other code no output is sent."""

    def __bool__(self) -> bool:
        """Return whether there is any input or output."""
        return bool(self.inputs or self.outputs)


class DirectPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a job that is sent directly, with its arguments, environment and files."""

    argv: tuple[str, ...]
    """The program and its arguments. If a file in the job's working directory has the program's relative name, that file is run."""
    environment: Mapping[str, str] = {}
    stdin: str = ""
    """The name of the file in the working directory that becomes the program's standard input; empty for none."""
    cpu_seconds: int = 0
    """The CPU time in seconds that each process of the job may use; 0 for no limit."""
    inputs: Path
    """A directory of this machine with the job's input files. The dispatcher moves it to the job, or removes it once it has packed the files."""
    staged: StagedFiles = StagedFiles()
    """The files that the middleware moves by URL. Only a `StagingDispatcher` can be given any."""


class DirectEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a job that was sent directly ended, and where its output is on this machine."""

    directory: Path
    """The directory with the job's working directory `work`, and `stdout.txt` and `stderr.txt`."""
    exit_code: int | None
    """The program's exit code as a shell counts it: after a signal, 128 and its number. None if it is unknown."""
    ended_for: str = ""
    """Why the job's script ended the program: `lease` (the lease ran out) or `told` (the script got a signal); empty if it did not."""
    has_begun: bool = False
    cpu_user_seconds: float = 0.0
    cpu_system_seconds: float = 0.0
    wall_seconds: float = 0.0


def end_in(directory: Path) -> DirectEnd:
    """Return how a direct job ended, by the files that its script left in its directory. The call blocks.

    The job's own account can write these files, so each is read up to a limit. Missing or malformed ones give 0, None or empty values.
    """
    code, began, usage = (_read(directory / name) for name in (EXIT, BEGAN, USAGE))
    user, system = _children(usage)
    return DirectEnd(
        directory=directory,
        exit_code=int(code) if code.isdecimal() and len(code) <= 3 else None,
        ended_for=_read(directory / ENDED),
        has_begun=bool(began),
        cpu_user_seconds=user,
        cpu_system_seconds=system,
        wall_seconds=max(0.0, _number(usage.split()[-1:]) - _number([began])) if began and usage else 0.0,
    )


def _read(path: Path) -> str:
    try:
        with path.open("r", encoding="ascii", errors="replace") as file:
            return file.read(SMALL_FILE).strip()
    except OSError:
        return ""


_TIMES = re.compile(r"(\d{1,9})m(\d{1,2}(?:[.,]\d{1,9})?)s")


def _children(usage: str) -> tuple[float, float]:
    """Return the user and system CPU time of a shell's child processes, in seconds, from the output of its command `times`."""
    told = [
        60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in _TIMES.findall(usage)
    ]
    return (told[2], told[3]) if len(told) == 4 else (0.0, 0.0)


def _number(words: list[str]) -> float:
    return float(words[0]) if words and words[0].isdecimal() and len(words[0]) < 12 else 0.0


@runtime_checkable
class DirectDispatcher(Protocol):
    """The further calls of a dispatcher that can send jobs directly. Its `send` takes requests with a `payload`."""

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Pass a renewed lease on to a job: it may run for `seconds` seconds from now on.

        `number` must differ from renewal to renewal, since the job takes an equal number for the same renewal.
        """

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Copy the output of an ended job to this machine; return the output's directory and how the job ended.

        Raise Unavailable if that is not possible now.
        """


@runtime_checkable
class StagingDispatcher(Protocol):
    """The further call of a dispatcher whose middleware moves files by URL for jobs that are sent directly."""

    def staging_fault(self, name: str, url: str, checksum: str = "") -> str:
        """Return why the middleware cannot move a file from or to a URL; empty if it can.

        `name` is the file's path in the job's working directory. `checksum` is the one to verify; empty: none.
        """
