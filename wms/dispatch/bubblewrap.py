"""A sandbox for a site's program: bubblewrap, with namespaces of its own and a minimal, read-only file system.

The program sees `/usr`, its own file, and the files that it is given. It has no network, environment, capability, or directory to write to.
Its time, memory, output and number of processes are bounded. A program that exceeds a bound is killed with all processes that it started.
If this process is root, the program runs as another user, whose id no account has.

Nothing runs without the sandbox: if bubblewrap is missing or forbidden, running raises Unavailable.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from wms.dispatch.commands import Tools
from wms.errors import Unavailable, shown

MEMORY_BYTES = 256 * 2**20
"""How many bytes of address space each process in the sandbox may have."""
PROCESSES = 16
FILE_BYTES = 2**20
OPEN_FILES = 64
PATH = "/usr/local/bin:/usr/bin:/bin"
PROGRAM = "/program"
"""The path at which the program appears in the sandbox."""
_MISSING = "is never run without bubblewrap (bwrap), which is missing"
_PROBE_SECONDS = 60
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("/etc/alternatives", "/etc/ld.so.cache")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_FIRST_UID, _UIDS = 61_184, 4_000
"""The first user id for programs in the sandbox, and how many follow. systemd uses the same range for its dynamic users."""


class Bubblewrap(NamedTuple):
    """Runs one program of a site in a sandbox, each time for at most `seconds` seconds."""

    program: Path
    reads: Sequence[Path] = ()
    """Further files and directories that the program may read."""
    seconds: float = 5.0
    limit: int = 16_384
    """How many bytes the program may print."""

    def fault(self) -> str:
        """Return why the program cannot be run on this machine, worded to end a sentence; empty if it can. The call blocks."""
        if not shutil.which("bwrap"):
            return _MISSING
        if not (os.access(self.program, os.X_OK) and self.program.is_file()):
            return f"is no program: {self.program}"
        if missing := [each for each in self.reads if not _is_there(each)]:
            return f"is to read what is missing: {missing[0]}"
        return self._probe()

    def _probe(self) -> str:
        """Return why no sandbox can be made on this machine; empty if one can."""
        try:
            done = subprocess.run(
                self._argv(["true"]),
                capture_output=True,
                text=True,
                check=False,
                env={},
                timeout=_PROBE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"gets no sandbox on this machine: {error}"
        return (
            f"gets no sandbox on this machine: {shown(done.stderr.strip(), 300)}" if done.returncode else ""
        )

    async def run(self, text: str) -> bytes:
        """Run the program with `text` as its standard input, and return its standard output.

        Raise Unavailable if the program cannot be run, fails, or exceeds a bound.
        """
        if not shutil.which("bwrap"):
            raise Unavailable(_MISSING)
        argv = self._argv([PROGRAM])
        tools = Tools({}, at_once=1, seconds=self.seconds, limit=self.limit)
        try:
            said = await tools.run(*argv, text=text)
        except Unavailable as error:
            raise Unavailable(error.message.removeprefix(argv[0]).strip()) from None
        if said.code:
            raise Unavailable(f"failed with exit code {said.code}: {said.complaint}")
        return said.printed

    def _argv(self, command: Iterable[str]) -> list[str]:
        as_root = os.geteuid() == 0
        return [
            shutil.which("bwrap") or "bwrap",
            *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
            *(() if as_root else ("--unshare-user",)),
            *("--clearenv", "--setenv", "PATH", PATH, "--setenv", "LC_ALL", "C.UTF-8"),
            *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            # Root only becomes another user, without capabilities.
            *(("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if as_root else ()),
            *_view(self.program, self.reads),
            *("--remount-ro", "/", "--chdir", "/", "--"),
            *(_as_another(self.program) if as_root else ()),
            *_bounded(self.seconds),
            *command,
        ]


def _view(program: Path, reads: Iterable[Path]) -> Iterator[str]:
    """Yield the options of bubblewrap that make the file system of the sandbox."""
    yield from ("--ro-bind", "/usr", "/usr")
    for each in map(Path, _SYSTEM):
        if each.is_symlink():
            yield from ("--symlink", str(each.readlink()), str(each))
        elif each.is_dir():
            yield from ("--ro-bind", str(each), str(each))
    yield from ("--dir", "/dev")
    for device in _DEVICES:
        yield from ("--dev-bind", device, device)
    for each in (*map(Path, _ETC), *reads):
        if _is_there(each):
            # Made explicitly, since directories that bubblewrap makes by itself are closed to another user.
            yield from (word for parent in reversed(each.parents[:-1]) for word in ("--dir", str(parent)))
            yield from ("--ro-bind", str(each), str(each))
    yield from ("--ro-bind", str(program), PROGRAM)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def _as_another(program: Path) -> list[str]:
    """Return a command prefix that runs a program of root as another user. The kernel does not bound the number of root's processes."""
    uid = _FIRST_UID + crc32(f"{os.getpid()} {program}".encode()) % _UIDS
    return [
        *("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"),
        *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"),
    ]


def _bounded(seconds: float) -> list[str]:
    bounds = {
        "cpu": int(seconds) + 1,
        "as": MEMORY_BYTES,
        "fsize": FILE_BYTES,
        "nofile": OPEN_FILES,
        "nproc": PROCESSES,
        "core": 0,
    }
    return ["prlimit", *(f"--{name}={value}" for name, value in bounds.items()), "--"]
