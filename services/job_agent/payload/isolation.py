"""Settings for the isolation of payloads: namespaces of their own, if the kernel allows the pilot to make them.

`python -m services.job_agent.payload.isolation` prints why this machine cannot isolate payloads, or an empty line if it can.
"""

import asyncio
import os
import pwd
import sys
import tempfile
from pathlib import Path
from typing import Literal, Self
from urllib.parse import unquote, urlsplit

import msgspec

from services.job_agent.payload.process_control import Processes
from wms.dispatch.confinement import SECRETS
from wms.runtime.machine import look
from wms.runtime.pilot_config import PilotConfig

Mode = Literal["auto", "required", "none"]

OTHER_USER = "nobody"
"""The user as which isolated payloads run if the pilot itself runs as root."""
MIB = 1024 * 1024
SHM_LEAST, SHM_MOST = 64, 1024
"""The least and the greatest size of each payload's /dev/shm, in MiB. Between them it is a quarter of the memory for each slot."""


class PayloadIsolation(msgspec.Struct, frozen=True, kw_only=True):
    """How payloads are isolated from the pilot and from each other. `shm_mb` is the size of each payload's `/dev/shm` in MiB.

    With the mode `auto` payloads run without isolation if the kernel forbids it; with `required` none runs then; with `none`
    they are never isolated.
    """

    mode: Mode = "auto"
    hidden: tuple[str, ...] = ()
    """Directories that payloads see as empty. A payload still sees its own directories if they are below one of these."""
    shm_mb: int = SHM_LEAST

    @classmethod
    def of(cls, config: PilotConfig) -> Self:
        """Return the isolation for a pilot with this configuration.

        Hidden are: the directories that the configuration names, the directory with all jobs' directories, that of the token
        file, a local sandbox store, and directories with credentials.
        """
        pilot = config.pilot
        store = urlsplit(config.sandboxes.url)
        secrets = [Path.home() / name for name in SECRETS]
        hidden = [*pilot.hidden, pilot.directory, str(Path(pilot.token_file).parent), *map(str, secrets)]
        if store.scheme == "file":
            hidden.append(unquote(store.path))
        memory = config.resource.memory_mb or look().memory_mb
        share = memory // (4 * max(pilot.slots, 1))
        return cls(
            mode=pilot.isolation,
            hidden=tuple(each for each in hidden if each not in ("", "/", ".")),
            shm_mb=max(SHM_LEAST, min(SHM_MOST, share)),
        )

    def settings(self, jobs: Path) -> dict[str, object] | None:
        """Return the settings for containers, as `container.start` takes them; None if payloads are not to be isolated.

        `jobs` is the directory with all jobs' directories.
        """
        if self.mode == "none":
            return None
        owner = payload_owner()
        hidden = [Path(each) for each in self.hidden]
        return {
            "jobs": os.path.realpath(jobs),
            "hidden": sorted({os.path.realpath(each) for each in (*hidden, jobs)}),
            "shown": sorted({os.path.realpath(each) for each in (sys.prefix, sys.base_prefix)}),
            "shm_bytes": self.shm_mb * MIB,
            "uid": owner[0] if owner else None,
            "gid": owner[1] if owner else None,
        }


def payload_owner() -> tuple[int, int] | None:
    """Return the user and group ids as which isolated payloads run. None if they run as the pilot's own user, who is not root."""
    if os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam(OTHER_USER)
    except KeyError:
        return 65_534, 65_534
    return found.pw_uid, found.pw_gid


async def fault_here() -> str:
    """Try to make a container for payloads on this machine. Return why that fails, or an empty text."""
    with tempfile.TemporaryDirectory() as directory:
        async with Processes(PayloadIsolation().settings(Path(directory))) as processes:
            return processes.isolation_fault


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(fault_here()) + "\n")
