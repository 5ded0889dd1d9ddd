"""How payloads and their pilots are isolated, in words: on this machine, by a trial, and elsewhere, by what pilots report."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wms.dispatch.confinement import Mode
    from wms.messages.replies import SiteLine

SHOWN = 3
CHECK_SECONDS = 20.0


class IsolationHere(NamedTuple):
    """Why payloads are not isolated on this machine, and why pilots are not confined; each empty if they are."""

    payloads: str = ""
    pilots: str = ""

    def text(self) -> str:
        """Return what jobs can reach here as a sentence."""
        if not self.payloads and not self.pilots:
            account = ", under an account of its own" if os.geteuid() == 0 else ""
            return (
                f"jobs are isolated in namespaces{account}: each sees its own files and processes alone, and its pilot nothing of "
                "this system; jobs sent directly are refused"
            )
        if not self.payloads:
            return (
                "jobs are isolated: each sees its own files and processes alone; "
                f"but their pilots can read this system's keys ({self.pilots})"
            )
        reach = "this system's keys and each other's files" if self.pilots else "each other's files"
        return f"jobs are not isolated here ({self.payloads}): they can read {reach}"


def isolation_here(mode: "Mode") -> IsolationHere:
    """Try how pilots on this machine, which are told `mode`, are confined, and their payloads isolated."""
    if mode == "none":
        return IsolationHere("as asked for", "as asked for")
    from wms.dispatch.confinement import UNCONFINED, Confinement, own_programs
    from wms.dispatch.local import confined_argv

    confinement = Confinement(mode=mode, shown=own_programs())
    with tempfile.TemporaryDirectory() as own:
        if (owner := confinement.owner) is not None:
            os.chown(own, owner, owner)
        trial = [sys.executable, "-m", "services.job_agent.payload.isolation"]
        argv = confined_argv(confinement, Path(own), trial)
        try:
            judged = subprocess.run(argv, capture_output=True, check=False, timeout=CHECK_SECONDS, text=True)
        except (OSError, subprocess.SubprocessError) as error:
            unknown = f"it could not be found out: {type(error).__name__}"
            return IsolationHere(unknown, unknown)
    said = [
        line.removeprefix(UNCONFINED) for line in judged.stderr.splitlines() if line.startswith(UNCONFINED)
    ]
    fault = "" if judged.returncode == 0 else f"the trial ended with exit code {judged.returncode}"
    return IsolationHere(judged.stdout.strip() or fault, "; ".join(said))


def isolation_warning(elements: "Iterable[SiteLine]") -> str:
    """Return a line that names the elements whose pilots do not isolate payloads; empty if there are none."""
    bare = [f"{each.site}/{each.ce}" for each in elements if each.fresh and "none" in each.isolation]
    if not bare:
        return ""
    more = f" and {len(bare) - SHOWN} more" if len(bare) > SHOWN else ""
    return f"warning: at {', '.join(bare[:SHOWN])}{more} payloads run as plain processes of the pilot's account, and are not isolated"


UNISOLATED = ("none", "direct")
"""The words of pilots for payloads that see more than what is theirs. `wms why` tells of these alone."""


def reported_words(isolation: str) -> str:
    """Return as a phrase how a pilot isolates payloads. `isolation` is the word that the pilot reported, or a newer one."""
    known = {
        "account": "in namespaces, under an account of its own: each payload sees its own files and processes alone",
        "namespaces": "in namespaces: each payload sees its own files and processes alone",
        "none": "none: payloads run as plain processes of the pilot's account",
        "direct": "none: the job was sent directly, and ran as the account of its batch job",
    }
    return known.get(isolation, isolation)
