"""Jobs on this machine, counted by their processes, as SAM-Grid's `jim_advertise` does with `ps`.

A payload and all its processes have the job's id in their environment, a pilot has its own id and its element's.
Reading the environments of other users' processes needs the rights to.
"""

import contextlib
from collections.abc import Iterable, Mapping

import msgspec
import psutil

JOB = "WMS_JOB_ID"
PILOT = "WMS_PILOT"
ELEMENT = "WMS_PILOT_ELEMENT"


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """The number of running jobs, and of pilots without a job."""

    running: int = 0
    submitting: int = 0


def jobs_of(environments: Iterable[Mapping[str, str]], element: str = "") -> Jobs:
    """Return the number of jobs and idle pilots among processes with these environments.

    With an element, `SITE/CE`, those of other elements are left out, and those without a known element are counted.
    """
    found = list(environments)
    elements = {each.get(PILOT, ""): each[ELEMENT] for each in found if ELEMENT in each}
    here = [each for each in found if not element or elements.get(each.get(PILOT, ""), element) == element]
    jobs = {(each.get(PILOT, ""), each[JOB]) for each in here if JOB in each}
    pilots = {each[PILOT] for each in here if each.get(PILOT)}
    return Jobs(running=len({job for _, job in jobs}), submitting=len(pilots - {pilot for pilot, _ in jobs}))


def environments() -> list[Mapping[str, str]]:
    """Return the ids of the job, the pilot and the element in each process's environment, for processes with such ids."""
    found: list[Mapping[str, str]] = []
    for process in psutil.process_iter():
        # The process may have ended, or be another user's.
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if JOB in environment or PILOT in environment:
                found.append(
                    {name: environment[name] for name in (JOB, PILOT, ELEMENT) if name in environment}
                )
    return found
