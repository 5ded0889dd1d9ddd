"""Runs payloads in containers of images that their jobs name, by a program on the node: Podman or Apptainer.

A payload in such a container is isolated as other payloads are. It sees its image, its own working and scratch directories,
and nothing else of the node. Its system is read-only. It has no capabilities and can gain none. It runs as the same user as
other isolated payloads. Its processes inherit the payload's mark, a resource limit by which the shepherd finds and ends them.

The program is started without a shell. It gets only a few variables of the agent: a job's variables could tell it to load the
user's code. `podman.py` and `apptainer.py` have the programs; `runtime_search.py` finds one that works.
"""

import os
import re
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from services.job_agent.payload.shepherd_messages import SpawnOrder
from wms.errors import Rejected, Unavailable
from wms.job.reasons import Code, Reason

PROBE_SECONDS: Final = 60.0
NOT_STARTED: Final = (125, 126, 127, 255)
"""Exit codes with which Podman or Apptainer ends if the container, or the payload in it, did not start."""
PID_FILE: Final = "container.pid"
_PASSED: Final = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
"""The names of the agent's environment variables that Podman or Apptainer itself gets."""
OF_THE_NODE: Final = ("PATH", "LANG", "SHELL", "USER", "LOGNAME")
"""The names of variables that describe the node and not the image. A payload in a container has them only if its job sets them."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FAULT = re.compile(r"(?:Error:|FATAL:) +(.+)")
"""The line of an error by which Podman, or Apptainer, ends."""
_UNTOLD = "no logs from conmon"
"""Part of what Podman prints when `runc` did not start a container of a user who is not root. The reason is lost."""
TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - in the container
"""Where the payload's scratch directory is mounted in its container, beside its own path."""
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
"""The node's directories with programs and libraries."""


class ContainedPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload to run in the container of an image: an order for the payload without the container, and the container's settings.

    The variables in `order` are those for the payload. `image` is a path or a registry's name. `shm_mb` is the size of
    `/dev/shm` in MiB, in containers of Podman.
    """

    order: SpawnOrder
    image: str
    has_network: bool = True
    hidden: tuple[str, ...] = ()
    """Directories that are hidden from payloads: no local image may lie in one of them or contain one."""
    has_gpus: bool = False
    """Whether the payload has GPUs, which the container must see."""
    directory: Path
    """The directory of the attempt. The payload sees only two of its subdirectories: `cwd` and `scratch` of the order."""
    shm_mb: int = 64


class ImageRuntime(ABC):
    """A program on the node that runs containers of images: Podman or Apptainer."""

    name: str
    version: str = ""
    tells_pid: bool = False
    """Whether the program writes the pid of a container's first process to the file PID_FILE in the attempt's directory."""
    keeps_cgroup: bool = True
    """Whether containers run in the cgroup in which the program was started."""

    @abstractmethod
    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the command line that runs a payload in its container, and the environment for that command. Blocking.

        It may write files that the command reads into the attempt's directory. Raise Rejected if the image or a variable
        cannot be given to the program.
        """

    @abstractmethod
    def probe_command(self, directory: Path) -> list[str]:
        """Return a command line that runs the node's own program `true` in a container. `directory` is an empty directory for its use."""

    @abstractmethod
    def remove(self, payload: ContainedPayload) -> None:
        """Remove what the program keeps of the ended container of this payload. Blocking; errors are logged and not raised."""

    def order(self, payload: ContainedPayload) -> SpawnOrder:
        """Return the order for the shepherd to start the program with this payload in a container. Blocking.

        Raise Rejected if the image or a variable cannot be given to the program.
        """
        argv, environment = self.command(payload)
        # Limits of the kernel would bind the program itself.
        return msgspec.structs.replace(
            payload.order,
            argv=tuple(argv),
            env=environment,
            has_image=True,
            has_network=True,  # that of Podman or Apptainer itself, which takes it away from the payload
            pid_file=str(payload.directory / PID_FILE) if self.tells_pid else "",
            rlimits={},
        )

    def fault(self) -> str:
        """Run a container on trial, for at most PROBE_SECONDS. Return why that failed; empty if it succeeded. Blocking."""
        with tempfile.TemporaryDirectory(prefix="wms-probe-", ignore_cleanup_errors=True) as directory:
            Path(directory).chmod(0o755)
            found = ran(self.probe_command(Path(directory)), PROBE_SECONDS)
        return "" if found is None else found


def system_directories() -> list[str]:
    """Return the directories with programs and libraries that this node has. Blocking."""
    return [each for each in SYSTEM if Path(each).is_dir()]


def image_fault(text: str) -> str:
    """Return why Podman or Apptainer did not start a payload, from the last line of its standard error; empty if it did.

    `text` is that standard error.
    """
    last = text.strip().rpartition("\n")[2]
    if _UNTOLD in last:
        return "the container did not start, and Podman does not know why: look whether the image has the program"
    found = _FAULT.match(last)
    return found[1][:500] if found else ""


def reason_in_container(reason: Reason, exit_code: int | None, stderr: str) -> Reason:
    """Return the reason for the end of a payload in a container: NOT_STARTED if its exit code and `stderr` say so, else `reason`.

    Podman and Apptainer report with special exit codes that they did not start it.
    """
    fault = image_fault(stderr) if reason.code is Code.EXIT_CODE and exit_code in NOT_STARTED else ""
    return Reason(Code.NOT_STARTED, fault) if fault else reason


def runtime_of(runtime: ImageRuntime | None) -> ImageRuntime:
    """Return `runtime`, the program that runs containers. Raise Unavailable if it is None: the job is then tried on another node."""
    if runtime is None:
        raise Unavailable("this node runs no containers")
    return runtime


def places(order: SpawnOrder) -> list[tuple[str, str]]:
    """Return pairs of a directory on the node and the path at which it is mounted in the container.

    Raise Rejected if a path has a comma, colon or quote, which have a meaning in the programs' options.
    """
    if any(sign in path for path in (order.cwd, order.scratch) for sign in ',:"'):
        raise Rejected("NO_CONTAINER", "the pilot's directory has a comma, colon or quote in its path")
    own = [(path, path) for path in (order.cwd, order.scratch)]
    return [*own, *((order.scratch, path) for path in TEMPORARY)]


def mount_points(*mounted: Path) -> list[str]:
    """Return the directories that the scratch directory needs, so that those in `mounted` can be mounted at their own paths.

    Podman would make them as a user whose files neither the payload nor its stager can delete.
    """
    return [
        str(each.relative_to(above)) for each in mounted for above in TEMPORARY if each.is_relative_to(above)
    ]


def checked(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables. Raise Rejected if a name has other characters than letters, digits and _, or a value more than one line."""
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or "\n" in value or "\0" in value:
            raise Rejected(
                "BAD_VARIABLE", f"the variable {name[:100]!r} cannot be given to a container", "use one line"
            )
    return environment


def own_environment() -> dict[str, str]:
    """Return the variables of the agent that Podman or Apptainer itself gets."""
    return {name: os.environ[name] for name in _PASSED if name in os.environ}


def version_text(program: str) -> str:
    """Return the line that a program prints for the option `--version`; empty if it cannot be run. Blocking, for at most 10 seconds."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def ran(argv: Iterable[str], seconds: float) -> str | None:
    """Run a program for at most `seconds`. Return None if it succeeded, else the last line of its standard error or why it did not run."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            timeout=seconds,
            env=own_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:500]
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return None if done.returncode == 0 else (last or f"exit code {done.returncode}")[:500]
