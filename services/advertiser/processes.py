"""Jobs on this machine, counted by their processes, as SAM-Grid's `jim_advertise` does with `ps`.

A payload and all its processes bear the job's id in their environment, a pilot that of the pilot and of its element. The
environments of other users' processes are only read with the rights to.
"""

import contextlib
from collections.abc import Iterable, Mapping

import msgspec
import psutil

JOB = "WMS_JOB_ID"
PILOT = "WMS_PILOT"
ELEMENT = "WMS_PILOT_ELEMENT"


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs run, and how many pilots have been started that run none yet."""

    running: int = 0
    submitting: int = 0


def jobs_of(environments: Iterable[Mapping[str, str]], element: str = "") -> Jobs:
    """Count the jobs whose processes have these environments.

    With an element, `SITE/CE`, those of other elements are left out; jobs of which nothing says where they belong are not.
    """
    found = list(environments)
    elements = {each.get(PILOT, ""): each[ELEMENT] for each in found if ELEMENT in each}
    here = [each for each in found if not element or elements.get(each.get(PILOT, ""), element) == element]
    jobs = {(each.get(PILOT, ""), each[JOB]) for each in here if JOB in each}
    pilots = {each[PILOT] for each in here if each.get(PILOT)}
    return Jobs(running=len({job for _, job in jobs}), submitting=len(pilots - {pilot for pilot, _ in jobs}))


def environments() -> list[Mapping[str, str]]:
    """Return of each process that bears a mark what marks it."""
    found: list[Mapping[str, str]] = []
    for process in psutil.process_iter():
        # It may have ended since, or be another user's.
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if JOB in environment or PILOT in environment:
                found.append(
                    {name: environment[name] for name in (JOB, PILOT, ELEMENT) if name in environment}
                )
    return found
