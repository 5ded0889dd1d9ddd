"""Finds the program on this node that runs payloads in containers of images, by a trial of each."""

import os
import shutil
from typing import Final

from services.job_agent.payload.apptainer import Apptainer
from services.job_agent.payload.image_runtime import ImageRuntime, version_text
from services.job_agent.payload.podman import Podman

PODMANS: Final = ((), ("--cgroup-manager=cgroupfs",), ("--runtime=runc", "--cgroup-manager=cgroupfs"))
"""The global options with which Podman is tried, in this order: none, without systemd, and without systemd but with runc.

Before these it is tried without options and without cgroups of its own.
"""


def find_runtime() -> tuple[ImageRuntime | None, str]:
    """Return the first program that runs a container here on trial, Apptainer before Podman, and an empty text.

    If none does, return None and why each failed. Blocking: each trial takes seconds, at most PROBE_SECONDS.
    """
    faults = []
    for each in candidates():
        fault = each.fault()
        if not fault:
            each.version = version_text(each.name).rpartition(" ")[2][:50]
            return each, ""
        faults.append(f"{each.name}: {fault}")
    return None, "; ".join(dict.fromkeys(faults)) or _none_installed()


def candidates() -> list[ImageRuntime]:
    """Return the programs that are installed here and may run payloads, in the order in which they are tried. Blocking."""
    podmans = [Podman(keeps_cgroup=True), *(Podman(options) for options in PODMANS)]
    return [*_apptainers(), *(podmans if shutil.which("podman") else [])]


def _apptainers() -> list[ImageRuntime]:
    if os.geteuid() == 0:
        return []
    if shutil.which("apptainer"):
        return [Apptainer()]
    # A game has the same name.
    is_runtime = shutil.which("singularity") and " version " in version_text("singularity")
    return [Apptainer("singularity")] if is_runtime else []


def _none_installed() -> str:
    unused = " (apptainer is, which root does not use)" if shutil.which("apptainer") else ""
    return f"neither podman nor apptainer is installed{unused}"
