"""Podman as the program that runs payloads in containers of images."""

import os
import resource
import uuid
from pathlib import Path
from typing import Final

import structlog

from services.job_agent.payload.container import files_of_payload
from services.job_agent.payload.image_runtime import (
    PID_FILE,
    ContainedPayload,
    ImageRuntime,
    checked,
    own_environment,
    places,
    ran,
    system_directories,
)
from services.job_agent.payload.isolation import payload_owner
from services.job_agent.payload.local_image import ImageKind, image_path, kind_of
from services.job_agent.payload.process_control import FILES
from services.job_agent.payload.shepherd_messages import SpawnOrder
from wms.errors import Rejected

log = structlog.get_logger()

REMOVE_SECONDS: Final = 60.0
PROCESSES_MOST: Final = 32_768
_OWN_DIRECTORIES = ("/dev", "/etc", "/proc", "/run", "/sys")
"""Directories in which Podman makes files. A user who is not root could not remove them if the directories were Podman's, too."""


class Podman(ImageRuntime):
    """Podman, run by root or by another user. `options` are global options, such as `--runtime=runc`, before its subcommand.

    If `keeps_cgroup` is False, Podman makes a cgroup for each container. Only with `crun` it can do without.
    """

    name = "podman"
    tells_pid = True

    def __init__(self, options: tuple[str, ...] = (), *, keeps_cgroup: bool = False) -> None:
        self._options = options
        self.keeps_cgroup = keeps_cgroup

    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the `podman run` command line and the environment for it. Raise Rejected if image or variables cannot be used.

        Two files are written to the attempt's directory: the payload's variables, and a list of registry passwords, which is
        empty.
        """
        order, directory = payload.order, payload.directory
        variables = directory / "container.env"
        _written(variables, "".join(f"{name}={value}\n" for name, value in checked(order.env).items()))
        _written(directory / "registries.json", "{}\n")
        argv = [
            *self._base(),
            f"--name={_name(directory)}",
            f"--env-file={variables}",
            f"--pidfile={directory / PID_FILE}",
            "--pull=missing",
            f"--network={'host' if payload.has_network else 'none'}",
            f"--shm-size={payload.shm_mb}m",
            # By the node's list for containers (CDI), which `nvidia-ctk` makes; the payload's variable names its own of them.
            *(["--device=nvidia.com/gpu=all"] if payload.has_gpus else []),
            *_mounts(order),
            f"--workdir={order.cwd}",
            *(["--interactive"] if order.stdin else []),
            "--entrypoint=",
            *_image(payload),
            *order.argv,
        ]
        return argv, own_environment() | {"REGISTRY_AUTH_FILE": str(directory / "registries.json")}

    def probe_command(self, directory: Path) -> list[str]:
        """Return a command line that runs `true` in a container made of `directory`, with the node's system directories mounted in it."""
        system = system_directories()
        for each in (*system, *_OWN_DIRECTORIES):
            (directory / each[1:]).mkdir()
        mounts = [f"--mount=type=bind,src={each},dst={each},ro=true" for each in system]
        return [*self._base(), "--rm", "--network=none", *mounts, "--rootfs", str(directory), "/bin/true"]

    def remove(self, payload: ContainedPayload) -> None:
        """Remove the payload's container from Podman's storage, if it is there. Blocking; errors are logged."""
        fault = ran(
            [*self._program(), "rm", "--force", "--time=0", "--ignore", _name(payload.directory)],
            REMOVE_SECONDS,
        )
        if fault:
            log.warning("container not removed", error=fault)

    def _program(self) -> list[str]:
        return ["podman", *self._options]

    def _base(self) -> list[str]:
        owner = payload_owner()
        soft, hard = files_of_payload(FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        most = min(PROCESSES_MOST, *(each for each in resource.getrlimit(resource.RLIMIT_NPROC) if each > 0))
        return [
            *self._program(),
            "run",
            *(["--cgroups=disabled"] if self.keeps_cgroup else []),
            f"--user={owner[0]}:{owner[1]}" if owner else "--userns=keep-id",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--read-only",
            "--read-only-tmpfs=false",
            f"--ulimit=nofile={soft}:{hard}",
            f"--ulimit=nproc={most}:{most}",
            "--log-driver=passthrough",
        ]


def _image(payload: ContainedPayload) -> list[str]:
    image = payload.image
    if image.startswith("/"):
        path = image_path(image, payload.hidden)
        return _local(path, kind_of(path))
    if image.startswith(("oras://", "library://")):
        raise Rejected(
            "NO_IMAGE", f"podman does not take {image}", "name a docker:// image, or ask for Apptainer"
        )
    return [image]


def _local(path: str, kind: ImageKind) -> list[str]:
    # What follows a colon is an option of Podman's.
    if kind is ImageKind.PACKED or ":" in path:
        raise Rejected(
            "NO_IMAGE",
            f"podman does not take the image {path}",
            "name a directory or an archive without a colon in its path, or ask for Apptainer",
        )
    return ["--rootfs", path] if kind is ImageKind.DIRECTORY else [f"{kind.value}:{path}"]


def _mounts(order: SpawnOrder) -> list[str]:
    return [f"--mount=type=bind,src={source},dst={target}" for source, target in places(order)]


def _written(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _name(directory: Path) -> str:
    """Return the name of the container for the attempt in this directory. No other directory has the same name."""
    return f"wms-{uuid.uuid5(uuid.NAMESPACE_URL, str(directory))}"
