"""Counts the jobs on this machine by their processes, as SAM-Grid's `jim_advertise` does with `ps`.

All processes of a payload have the job's id in their environment. A pilot has its own id and that of its computing element. The environments of other
users' processes can be read only with privileges.
"""

import contextlib
from collections.abc import Iterable, Mapping

import msgspec
import psutil

JOB = "WMS_JOB_ID"
PILOT = "WMS_PILOT"
ELEMENT = "WMS_PILOT_ELEMENT"


class LocalJobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs that run on this machine (`running`), and of pilots that have no job yet (`submitting`)."""

    running: int = 0
    submitting: int = 0


def jobs_of(environments: Iterable[Mapping[str, str]], element: str = "") -> LocalJobCounts:
    """Return the numbers of running jobs and idle pilots among processes with these environments.

    If `element` is given, as `SITE/CE`, processes of other computing elements do not count.
    """
    found = list(environments)
    elements = {each.get(PILOT, ""): each[ELEMENT] for each in found if ELEMENT in each}
    here = [each for each in found if not element or elements.get(each.get(PILOT, ""), element) == element]
    jobs = {(each.get(PILOT, ""), each[JOB]) for each in here if JOB in each}
    pilots = {each[PILOT] for each in here if each.get(PILOT)}
    return LocalJobCounts(
        running=len({job for _, job in jobs}), submitting=len(pilots - {pilot for pilot, _ in jobs})
    )


def environments() -> list[Mapping[str, str]]:
    """Return the ids of job, pilot and computing element in the environment of each process that has them.

    All processes of this machine are read. Those that cannot be read are left out.
    """
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
