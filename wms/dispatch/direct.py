"""Direct dispatch: a job itself is sent to its computing element in place of a pilot, for sites whose nodes have no network to the outside.

The sender holds the job's lease, and passes it on by a file in the job's directory. The job does not begin before the lease is renewed once
more, and ends itself when it is not renewed. So it never runs beside another attempt, even if its sender is dead.
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
"""The names of two files: when the job's program began; and its processor time and the time of its end."""
STDOUT, STDERR = "stdout.txt", "stderr.txt"
SMALL_FILE = 1_000
"""How many bytes are read at most of a file that a job's script wrote."""
NEVER_BEGAN = 75
"""The exit code of a job that never began, as its lease was not renewed in time."""


class StagedInput(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the middleware fetches into the working directory of a job that is sent directly, before the job begins."""

    name: str
    """The path in the working directory."""
    url: str
    size: int | None = None
    """The size in bytes that the file must have; None: any."""
    checksum: str = ""
    """`sha256:` or `md5:` and the digits that the file must have, in hexadecimal; empty: any."""
    executable: bool = False


class StagedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the working directory that the middleware sends to a URL once the job has ended well."""

    name: str
    """The path in the working directory."""
    url: str


class StagedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files by URL of a job that is sent directly; the middleware moves them."""

    inputs: tuple[StagedInput, ...] = ()
    outputs: tuple[StagedOutput, ...] = ()
    success_exit_codes: tuple[int, ...] = (0,)
    """The exit codes with which the job has ended well: after others no output is sent."""

    def __bool__(self) -> bool:
        """Return whether there is any file."""
        return bool(self.inputs or self.outputs)


class DirectPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a job that is sent directly, with its arguments, environment and files."""

    argv: tuple[str, ...]
    """The program and its arguments. A relative name of a file in the job's directory means that file."""
    environment: Mapping[str, str] = {}
    stdin: str = ""
    """The name of the file in the job's directory that is its standard input; empty for none."""
    cpu_seconds: int = 0
    """The CPU time in seconds that each process of the job may use; 0 for no limit."""
    inputs: Path
    """A directory of this machine with the job's input files. The dispatcher moves or removes it."""
    staged: StagedFiles = StagedFiles()
    """The files by URL; only a `StagingDispatcher` may be given any."""


class DirectEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a job that was sent directly ended, and where its output is on this machine."""

    directory: Path
    """The directory with the job's working directory `work`, and `stdout.txt` and `stderr.txt`."""
    exit_code: int | None
    """The program's exit code as a shell counts it: after a signal, 128 and its number. None if it is unknown."""
    ended_for: str = ""
    """Why the job's script ended the program: `lease` (it was not renewed) or `told` (by a signal); empty if it ended by itself."""
    has_begun: bool = False
    cpu_user_seconds: float = 0.0
    cpu_system_seconds: float = 0.0
    wall_seconds: float = 0.0


def end_in(directory: Path) -> DirectEnd:
    """Return how a job that was sent directly ended, by the files in its directory. The call blocks.

    The files were written by the job's own account, so their content is only trusted within bounds. Missing ones give 0, None or empty
    values.
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
    """Return the user and the system time, in seconds, of a shell's children, as its command `times` prints them."""
    told = [
        60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in _TIMES.findall(usage)
    ]
    return (told[2], told[3]) if len(told) == 4 else (0.0, 0.0)


def _number(words: list[str]) -> float:
    return float(words[0]) if words and words[0].isdecimal() and len(words[0]) < 12 else 0.0


@runtime_checkable
class DirectDispatcher(Protocol):
    """The further calls of a dispatcher that can send jobs directly. Its `send` takes requests with a payload."""

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Pass on a renewed lease to a job: it may run for `seconds` seconds from now on.

        `number` must differ with each renewal, as the job ignores a number that it knows.
        """

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Bring the output of an ended job to this machine; return where it is and how the job ended.

        Raise Unavailable if that is not possible now.
        """


@runtime_checkable
class StagingDispatcher(Protocol):
    """What a dispatcher offers beside its port if its middleware can move files by URL for jobs that are sent directly."""

    def staging_fault(self, name: str, url: str, checksum: str = "") -> str:
        """Return why the middleware cannot move a file from or to a URL; empty if it can.

        `name` is the file's path in the job's working directory. `checksum` is the one to verify; empty: none.
        """
