"""Container images: the program of the node, Podman or Apptainer, that runs a payload in the container of an image.

The container keeps the rules of other isolated payloads. It sees its image, its own working and scratch directories, and nothing
else of the node. Its system is read-only, and it has no capabilities and can gain none. It runs as the same user as other isolated payloads.
Processes in it bear the payload's mark, so that the shepherd ends them as any others.

Neither image nor environment pass a shell. The program gets a few variables of the agent alone: with those of a job it could be told to
load what it should not.
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
"""Exit codes of the programs if the container, or the program in it, does not start."""
PID_FILE: Final = "container.pid"
PROCESSES_MOST: Final = 32_768
PASSED: Final = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
"""Variables of the agent that the program gets."""
OF_THE_NODE: Final = ("PATH", "LANG", "SHELL", "USER", "LOGNAME")
"""Variables that describe the node, and not the image. A payload in a container has them only if its job gives them."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")


class ContainedPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What is run in a container: an order as for other payloads, with the job's own variables apart."""

    order: SpawnOrder
    image: str
    has_network: bool = True
    hidden: tuple[str, ...] = ()
    """Directories of which no image may be a part."""
    directory: Path
    """The directory of the attempt, of which the payload sees only `cwd` and `scratch`."""
    shm_mb: int = 64


class ImageRuntime(ABC):
    """A program of the node that runs containers."""

    name: str
    version: str = ""
    tells_pid: bool = False
    """Whether it writes the pid of the first process in a container to the file `PID_FILE` of the attempt's directory."""

    @abstractmethod
    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the command line that runs a payload, and its environment. Files beside the payload's directories may be written.

        Raise Rejected if the image or a variable cannot be given to the program.
        """

    @abstractmethod
    def probe_command(self, directory: Path) -> list[str]:
        """Return a command line that runs `true` of the node's own system in a container. `directory` is empty."""

    @abstractmethod
    def remove(self, payload: ContainedPayload) -> None:
        """Remove what the program has left of an ended container. Blocking; errors are logged."""

    def order(self, payload: ContainedPayload) -> SpawnOrder:
        """Return the order for the shepherd. Raise Rejected as `command` does."""
        argv, environment = self.command(payload)
        # Limits of the kernel would bind the program itself.
        return msgspec.structs.replace(
            payload.order,
            argv=tuple(argv),
            env=environment,
            has_image=True,
            pid_file=str(payload.directory / PID_FILE) if self.tells_pid else "",
            rlimits={},
        )

    def fault(self) -> str:
        """Run a container on trial; return why that failed, or an empty text. Blocking."""
        with tempfile.TemporaryDirectory(prefix="wms-probe-") as directory:
            Path(directory).chmod(0o755)
            found = _ran(self.probe_command(Path(directory)), PROBE_SECONDS)
        return "" if found is None else found


class Podman(ImageRuntime):
    """Podman, of root or of a user. `options` come before its command: the kind of runtime below it."""

    name = "podman"
    tells_pid = True

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = options

    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the command line and environment, and write the files with the payload's variables and without any password."""
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
        """Return a command line with the node's own directories in an empty image."""
        system = [each for each in _SYSTEM if Path(each).is_dir()]
        for each in system:
            (directory / each[1:]).mkdir()
        mounts = [f"--mount=type=bind,src={each},dst={each},ro=true" for each in system]
        return [*self._base(), "--rm", "--network=none", *mounts, "--rootfs", str(directory), "/bin/true"]

    def remove(self, payload: ContainedPayload) -> None:
        """Remove the container from Podman's list, with its layer."""
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
    """Apptainer, of a user other than root: root's payloads would be root in the container."""

    name = "apptainer"

    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the command line and environment. The payload's variables are told by names of Apptainer's own."""
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
        """Return a command line with the node's own system as the image."""
        return [*self._base(), "/", "/bin/true"]

    def remove(self, payload: ContainedPayload) -> None:
        """Do nothing: Apptainer keeps no list of containers."""

    @staticmethod
    def _base() -> list[str]:
        return ["apptainer", "--quiet", "exec", "--containall", "--no-home", "--no-privs"]


PODMANS: Final = ((), ("--cgroup-manager=cgroupfs",), ("--runtime=runc", "--cgroup-manager=cgroupfs"))
"""The options with which Podman is tried: as it is set up, without systemd, and with a runtime that knows all versions of cgroups."""


def find_runtime() -> tuple[ImageRuntime | None, str]:
    """Return the first program that really runs a container on this node, and why others do not. Blocking, for seconds at most."""
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
    """Return why the program did not start a payload, by the last line of its standard error; empty if it did."""
    last = text.strip().rpartition("\n")[2]
    return last.removeprefix("Error: ")[:500] if last.startswith(("Error: ", "FATAL: ")) else ""


def reason_in_container(reason: Reason, exit_code: int | None, stderr: str) -> Reason:
    """Return why a payload in a container ended: `reason`, unless the program did not start it, as its exit code and text say."""
    fault = image_fault(stderr) if reason.code is Code.EXIT_CODE and exit_code in NOT_STARTED else ""
    return Reason(Code.NOT_STARTED, fault) if fault else reason


def runtime_of(runtime: ImageRuntime | None) -> ImageRuntime:
    """Return the program that runs containers. Raise Unavailable if the node has none, so that the job is tried elsewhere."""
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
    """Return the true path of a local image. Raise Rejected if payloads may not read it by themselves, or if it shows hidden files."""
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
    """Return whether every user may read a file or directory, and pass the directories above."""
    try:
        modes = [each.stat().st_mode for each in (path, *path.parents)]
    except OSError:
        return False
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(modes[0]) else 0)
    is_file = stat.S_ISDIR(modes[0]) or stat.S_ISREG(modes[0])
    return is_file and modes[0] & wanted == wanted and all(each & stat.S_IXOTH for each in modes[1:])


def _places(order: SpawnOrder) -> list[tuple[str, str]]:
    """Return which directories of the node are where in the container. Raise Rejected if a path has signs with a meaning."""
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
    """Return the container's name: the same for the same directory, and no other's on the node."""
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
    """Run a program; return None if it succeeded, else the last line that it printed, or why it could not run."""
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
