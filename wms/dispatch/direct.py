"""Direct dispatch: a job itself is sent to its element in place of a pilot, for sites whose nodes have no way out.

The sender holds the job's lease, and passes it on by a file beside the job: the job does not begin before the lease is renewed
once more, and ends itself when it is not renewed. So it never runs beside another attempt, however dead its sender is.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from wms.ids import PilotId

LEASE, EXIT, ENDED, WORK = "lease", "exit", "ended", "work"
"""The files in a job's directory: its lease, its exit code, why it was ended, and the directory that it runs in."""
BEGAN, USAGE = "began", "usage"
"""The files with the time at which its program began, and with its processor time and the time at its end."""
STDOUT, STDERR = "stdout.txt", "stderr.txt"
SMALL_FILE = 1_000
"""The most bytes of such a file that are read."""
NEVER_BEGAN = 75
"""The exit code of a job whose lease was over before it began."""


class DirectPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The program of a job that is sent directly, with its files."""

    argv: tuple[str, ...]
    """The program and its arguments; a program that is a file of the job's directory is started there."""
    environment: Mapping[str, str] = {}
    stdin: str = ""
    """A file in the job's directory that it reads; empty for nothing."""
    cpu_seconds: int = 0
    """The most CPU time of each of its processes, in seconds; 0 for no limit."""
    inputs: Path
    """A directory of this machine with its input files. It belongs to the dispatcher from then on."""


class DirectEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What a job that was sent directly left behind, on this machine."""

    directory: Path
    """The directory with `work`, `stdout.txt` and `stderr.txt`."""
    exit_code: int | None
    """The exit code of its program, as a shell counts it: 128 and the number of the signal that ended it; None if it is unknown."""
    ended_for: str = ""
    """Why the job ended its program: `lease`, or `told`; empty if that ended by itself."""
    has_begun: bool = False
    cpu_user_seconds: float = 0.0
    cpu_system_seconds: float = 0.0
    wall_seconds: float = 0.0


def end_in(directory: Path) -> DirectEnd:
    """Return how a job ended, by the files in its directory; blocking. Whatever they hold, it was written by the job's own account."""
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
    """Return the user and system time of a shell's children, as its `times` prints them: the last two of four."""
    told = [
        60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in _TIMES.findall(usage)
    ]
    return (told[2], told[3]) if len(told) == 4 else (0.0, 0.0)


def _number(words: list[str]) -> float:
    return float(words[0]) if words and words[0].isdecimal() and len(words[0]) < 12 else 0.0


@runtime_checkable
class DirectDispatcher(Protocol):
    """What a dispatcher offers beside its port if it sends jobs directly: `send` then takes orders with a payload."""

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Pass on the lease of a job: from now on it may run for so many seconds. Each number is another, and only new ones count."""

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Bring what an ended job left to this machine, and return where. Raises Unavailable if that cannot be had now."""
