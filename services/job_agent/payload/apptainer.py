"""Apptainer, or SingularityCE, as the program that runs payloads in containers of images."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from services.job_agent.payload.image_runtime import (
    ContainedPayload,
    ImageRuntime,
    checked,
    own_environment,
    places,
    system_directories,
)
from services.job_agent.payload.local_image import ImageKind, image_path, kind_of
from wms.errors import Rejected

OWN: Final = "apptainer"
"""The name of the program, and that of the subdirectory of an attempt's directory for its files."""
FUSE: Final = "/dev/fuse"
SHARED: Final = "/dev/shm"  # noqa: S108 - in the container
"""Shared memory. Apptainer's own could take half of the node's memory, so payloads have their scratch directory there, which has a limit."""


class Apptainer(ImageRuntime):
    """Apptainer, run by a user other than root: with root, payloads would be root in their containers.

    `program` may also be `singularity`, SingularityCE, which has the same command line. Its variables begin with
    `SINGULARITY`.
    """

    def __init__(self, program: str = OWN) -> None:
        self.name = program
        self._prefix = program.upper()

    def command(self, payload: ContainedPayload) -> tuple[list[str], dict[str, str]]:
        """Return the `apptainer exec` command line and the environment for it. Raise Rejected if image or variables cannot be used.

        The payload's variables are in that environment with the prefix `APPTAINERENV_`, which Apptainer removes. Only HOME is
        on the command line. A directory for Apptainer's own files is made in the attempt's directory.
        """
        order = payload.order
        argv = [
            *self._base(),
            f"--home={order.cwd}:{_home(order.env, order.cwd)}",
            *(f"--bind={source}:{target}" for source, target in (*places(order), (order.scratch, SHARED))),
            f"--pwd={order.cwd}",
            *([] if payload.has_network else ["--net", "--network=none"]),
            *(["--nv"] if payload.has_gpus else []),
            *self._image(payload),
            *order.argv,
        ]
        told = {
            f"{self._prefix}ENV_{name}": value for name, value in checked(order.env).items() if name != "HOME"
        }
        return argv, own_environment() | self._own_places(payload.directory / OWN) | told

    def probe_command(self, directory: Path) -> list[str]:
        """Return a command line that runs `true` in a container made of `directory`, with the node's system directories mounted in it."""
        system = system_directories()
        for each in (*system, "/dev", "/etc", "/proc", "/sys", "/tmp", "/var/tmp"):  # noqa: S108 - in the container
            (directory / each[1:]).mkdir(parents=True)
        binds = [f"--bind={each}:{each}:ro" for each in system]
        return [*self._base(), *binds, "--pwd=/", "--net", "--network=none", str(directory), "/bin/true"]

    def remove(self, payload: ContainedPayload) -> None:
        """Do nothing: Apptainer keeps no list of containers, and its files are in the attempt's directory."""

    def _base(self) -> list[str]:
        # Values of variables would be evaluated by a shell without `--no-eval`.
        return [self.name, "--silent", "exec", "--containall", "--no-home", "--no-privs", "--no-eval"]

    def _image(self, payload: ContainedPayload) -> list[str]:
        if not payload.image.startswith("/"):
            return [payload.image if "://" in payload.image else f"docker://{payload.image}"]
        path = image_path(payload.image, payload.hidden)
        kind = kind_of(path)
        if kind in (ImageKind.DIRECTORY, ImageKind.PACKED):
            return [*self._unpacking(), path]
        return [*self._unpacking(), f"{kind.value}:{path}"]

    def _unpacking(self) -> list[str]:
        """Return the option to unpack an image that is a file, if the node's users may not mount it by FUSE."""
        is_open = os.access(FUSE, os.R_OK | os.W_OK)
        return ["--unsquash"] if self.name == OWN and not is_open else []

    def _own_places(self, directory: Path) -> dict[str, str]:
        """Return the variables that tell Apptainer its directories. What the pilot's account keeps for itself, such as passwords of registries, is in none."""
        directory.mkdir(mode=0o700, exist_ok=True)
        return {
            f"{self._prefix}_CONFIGDIR": str(directory),
            f"{self._prefix}_TMPDIR": str(directory),
            f"{self._prefix}_CACHEDIR": os.environ.get(f"{self._prefix}_CACHEDIR")
            or str(Path.home() / f".{self.name}" / "cache"),
        }


def _home(environment: Mapping[str, str], otherwise: str) -> str:
    """Return the payload's home directory in the container: its variable HOME, or `otherwise`.

    Raise Rejected if the program could misread it.
    """
    home = environment.get("HOME", otherwise)
    if not home.startswith("/") or any(sign in home for sign in ",:\n\0"):
        raise Rejected(
            "BAD_VARIABLE", "HOME cannot be given to a container", "use an absolute path without , and :"
        )
    return home
