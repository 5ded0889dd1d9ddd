"""Runs payloads in containers of images that their jobs name, by a program on the node: Podman or Apptainer.

A payload in such a container is isolated as other payloads are. It sees its image, its own working and scratch directories,
and nothing else of the node. Its system is read-only. It has no capabilities and can gain none. It runs as the same user as
other isolated payloads. Its processes inherit the payload's mark, a resource limit by which the shepherd finds and ends them.

The program is started without a shell. It gets only a few variables of the agent: a job's variables could tell it to load the
user's code.
"""

import os
import re
import resource
import shutil
import stat
import subprocess
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from services.job_agent.payload.isolation import payload_owner
from services.job_agent.payload.shepherd_messages import SpawnOrder
from wms.errors import Rejected, Unavailable
from wms.job.reasons import Code, Reason

log = structlog.get_logger()

PROBE_SECONDS: Final = 60.0
REMOVE_SECONDS: Final = 60.0
NOT_STARTED: Final = (125, 126, 127, 255)
"""Exit codes with which Podman or Apptainer ends if the container, or the payload in it, did not start."""
PID_FILE: Final = "container.pid"
PROCESSES_MOST: Final = 32_768
PASSED: Final = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
"""The names of the agent's environment variables that Podman or Apptainer itself gets."""
OF_THE_NODE: Final = ("PATH", "LANG", "SHELL", "USER", "LOGNAME")
"""The names of variables that describe the node and not the image. A payload in a container has them only if its job sets them."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNTOLD = "no logs from conmon"
"""Part of what Podman prints when `runc` did not start a container of a user who is not root. The reason is lost."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_OWN_DIRECTORIES = ("/dev", "/etc", "/proc", "/run", "/sys")
"""Directories in which Podman makes files. A user who is not root could not remove them if the directories were Podman's, too."""


class ContainedPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload to run in the container of an image: an order for the payload without the container, and the container's settings.

    The variables in `order` are those for the payload. `image` is a path or a registry's name. `shm_mb` is the size of
    `/dev/shm` in MiB.
    """

    order: SpawnOrder
    image: str
    has_network: bool = True
    hidden: tuple[str, ...] = ()
    """Directories that are hidden from payloads: no local image may lie in one of them or contain one."""
    directory: Path
    """The directory of the attempt. The payload sees only two of its subdirectories: `cwd` and `scratch` of the order."""
    shm_mb: int = 64


class ImageRuntime(ABC):
    """A program on the node that runs containers of images: Podman or Apptainer."""

    name: str
    version: str = ""
    tells_pid: bool = False
    """Whether the program writes the pid of a container's first process to the file PID_FILE in the attempt's directory."""

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
            found = _ran(self.probe_command(Path(directory)), PROBE_SECONDS)
        return "" if found is None else found


class Podman(ImageRuntime):
    """Podman, run by root or by another user. `options` are global options, such as `--runtime=runc`, before its subcommand."""

    name = "podman"
    tells_pid = True

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = options

    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the `podman run` command line and the environment for it. Raise Rejected if image or variables cannot be used.

        Two files are written to the attempt's directory: the payload's variables, and a list of registry passwords, which is
        empty.
        """
        order, directory = payload.order, payload.directory
        variables = directory / "container.env"
        _written(variables, "".join(f"{name}={value}\n" for name, value in _checked(order.env).items()))
        _written(directory / "registries.json", "{}\n")
        argv = [
            *self._base(),
            f"--name={_name(directory)}",
            f"--env-file={variables}",
            f"--pidfile={directory / PID_FILE}",
            "--pull=missing",
            f"--network={'host' if payload.has_network else 'none'}",
            f"--shm-size={payload.shm_mb}m",
            *_mounts(order),
            f"--workdir={order.cwd}",
            *(["--interactive"] if order.stdin else []),
            "--entrypoint=",
            *_image_of_podman(payload),
            *order.argv,
        ]
        return argv, _own() | {"REGISTRY_AUTH_FILE": str(directory / "registries.json")}

    def probe_command(self, directory: Path) -> list[str]:
        """Return a command line that runs `true` in a container made of `directory`, with the node's system directories mounted in it."""
        system = [each for each in _SYSTEM if Path(each).is_dir()]
        for each in (*system, *_OWN_DIRECTORIES):
            (directory / each[1:]).mkdir()
        mounts = [f"--mount=type=bind,src={each},dst={each},ro=true" for each in system]
        return [*self._base(), "--rm", "--network=none", *mounts, "--rootfs", str(directory), "/bin/true"]

    def remove(self, payload: ContainedPayload) -> None:
        """Remove the payload's container from Podman's storage, if it is there. Blocking; errors are logged."""
        fault = _ran(
            [*self._program(), "rm", "--force", "--time=0", "--ignore", _name(payload.directory)],
            REMOVE_SECONDS,
        )
        if fault:
            log.warning("container not removed", error=fault)

    def _program(self) -> list[str]:
        return ["podman", *self._options]

    def _base(self) -> list[str]:
        owner = payload_owner()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = min(PROCESSES_MOST, *(each for each in resource.getrlimit(resource.RLIMIT_NPROC) if each > 0))
        return [
            *self._program(),
            "run",
            f"--user={owner[0]}:{owner[1]}" if owner else "--userns=keep-id",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--read-only",
            "--read-only-tmpfs=false",
            f"--ulimit=nofile={soft}:{hard}",
            f"--ulimit=nproc={most}:{most}",
            "--log-driver=passthrough",
        ]


class Apptainer(ImageRuntime):
    """Apptainer, run by a user other than root: with root, payloads would be root in their containers."""

    name = "apptainer"

    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the `apptainer exec` command line and the environment for it. Raise Rejected if image or variables cannot be used.

        The payload's variables are in that environment with the prefix `APPTAINERENV_`, which Apptainer removes.
        """
        order = payload.order
        argv = [
            *self._base(),
            *(f"--bind={source}:{target}" for source, target in _places(order)),
            f"--pwd={order.cwd}",
            *([] if payload.has_network else ["--net", "--network=none"]),
            _path(payload) if payload.image.startswith("/") else _with_scheme(payload.image),
            *order.argv,
        ]
        told = {f"APPTAINERENV_{name}": value for name, value in _checked(order.env).items()}
        return argv, _own() | told

    def probe_command(self, directory: Path) -> list[str]:  # noqa: ARG002 - the node's system itself is the image
        """Return a command line that runs `true` with the node's own root directory as the image."""
        return [*self._base(), "/", "/bin/true"]

    def remove(self, payload: ContainedPayload) -> None:
        """Do nothing: Apptainer keeps no list of containers."""

    @staticmethod
    def _base() -> list[str]:
        return ["apptainer", "--quiet", "exec", "--containall", "--no-home", "--no-privs"]


PODMANS: Final = ((), ("--cgroup-manager=cgroupfs",), ("--runtime=runc", "--cgroup-manager=cgroupfs"))
"""The global options with which Podman is tried, in this order: none, without systemd, and without systemd but with runc."""


def find_runtime() -> tuple[ImageRuntime | None, str]:
    """Return the first program that runs a container here on trial, Apptainer before Podman, and an empty text.

    If none does, return None and why each failed. Blocking: each trial takes seconds, at most PROBE_SECONDS.
    """
    candidates: list[ImageRuntime] = []
    if shutil.which("apptainer") and os.geteuid() != 0:
        candidates.append(Apptainer())
    if shutil.which("podman"):
        candidates += [Podman(options) for options in PODMANS]
    faults = []
    for each in candidates:
        fault = each.fault()
        if not fault:
            each.version = _version(each.name)
            return each, ""
        faults.append(f"{each.name}: {fault}")
    return None, "; ".join(dict.fromkeys(faults)) or "neither podman nor apptainer is installed"


def image_fault(text: str) -> str:
    """Return why Podman or Apptainer did not start a payload, from the last line of its standard error; empty if it did.

    `text` is that standard error.
    """
    last = text.strip().rpartition("\n")[2]
    if _UNTOLD in last:
        return "the container did not start, and Podman does not know why: look whether the image has the program"
    return last.removeprefix("Error: ")[:500] if last.startswith(("Error: ", "FATAL: ")) else ""


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


def _image_of_podman(payload: ContainedPayload) -> list[str]:
    image = payload.image
    if image.startswith("/"):
        path = _path(payload)
        return ["--rootfs", path] if Path(path).is_dir() else [f"docker-archive:{path}"]
    if image.startswith(("oras://", "library://")):
        raise Rejected(
            "NO_IMAGE", f"podman does not take {image}", "name a docker:// image, or ask for Apptainer"
        )
    return [image]


def _with_scheme(image: str) -> str:
    return image if "://" in image else f"docker://{image}"


def _path(payload: ContainedPayload) -> str:
    """Return the path of a local image without symbolic links.

    Raise Rejected if not every user may read it, or if it lies in a hidden directory or contains one.
    """
    path = os.path.realpath(payload.image)
    for each in payload.hidden:
        if _is_below(path, each) or _is_below(each, path):
            raise Rejected("NO_IMAGE", f"{payload.image} is no image: the node keeps it from payloads")
    if not _is_public(Path(path)):
        raise Rejected("NO_IMAGE", f"there is no image {payload.image} that every user of the node may read")
    return path


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(above.rstrip("/") + "/")


def _is_public(path: Path) -> bool:
    """Return whether every user may read this file or directory and pass the directories above it. False if it does not exist."""
    try:
        modes = [each.stat().st_mode for each in (path, *path.parents)]
    except OSError:
        return False
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(modes[0]) else 0)
    is_file = stat.S_ISDIR(modes[0]) or stat.S_ISREG(modes[0])
    return is_file and modes[0] & wanted == wanted and all(each & stat.S_IXOTH for each in modes[1:])


def _places(order: SpawnOrder) -> list[tuple[str, str]]:
    """Return pairs of a directory on the node and the path at which it is mounted in the container.

    Raise Rejected if a path has a comma, colon or quote, which have a meaning in the programs' options.
    """
    if any(sign in path for path in (order.cwd, order.scratch) for sign in ',:"'):
        raise Rejected("NO_CONTAINER", "the pilot's directory has a comma, colon or quote in its path")
    own = [(path, path) for path in (order.cwd, order.scratch)]
    return [*own, *((order.scratch, path) for path in ("/tmp", "/var/tmp"))]  # noqa: S108 - in the container


def _mounts(order: SpawnOrder) -> list[str]:
    return [f"--mount=type=bind,src={source},dst={target}" for source, target in _places(order)]


def _checked(environment: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or "\n" in value or "\0" in value:
            raise Rejected(
                "BAD_VARIABLE", f"the variable {name[:100]!r} cannot be given to a container", "use one line"
            )
    return environment


def _written(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _name(directory: Path) -> str:
    """Return the name of the container for the attempt in this directory. No other directory has the same name."""
    return f"wms-{uuid.uuid5(uuid.NAMESPACE_URL, str(directory))}"


def _own() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED if name in os.environ}


def _version(name: str) -> str:
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().rpartition(" ")[2][:50]


def _ran(argv: Iterable[str], seconds: float) -> str | None:
    """Run a program for at most `seconds`. Return None if it succeeded, else the last line of its standard error or why it did not run."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            timeout=seconds,
            env=_own(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:500]
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return None if done.returncode == 0 else (last or f"exit code {done.returncode}")[:500]
