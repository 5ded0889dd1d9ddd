"""Jobs on this machine, counted by their processes, as SAM-Grid's `jim_advertise` does with `ps`.

A payload and all its processes bear the job's id in their environment, a pilot that of the pilot. The environments of other
users' processes are only read with the rights to.
"""

import contextlib
from collections.abc import Iterable, Mapping

import msgspec
import psutil

JOB = "WMS_JOB_ID"
PILOT = "WMS_PILOT"


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs run, and how many pilots have been started that run none yet."""

    running: int = 0
    submitting: int = 0


def count() -> Jobs:
    """Count the jobs of this machine."""
    return jobs_of(_environments())


def jobs_of(environments: Iterable[Mapping[str, str]]) -> Jobs:
    """Count the jobs whose processes have these environments."""
    jobs: set[str] = set()
    pilots: set[str] = set()
    busy: set[str] = set()
    for environment in environments:
        pilot = environment.get(PILOT)
        if pilot:
            pilots.add(pilot)
        if job := environment.get(JOB):
            jobs.add(job)
            busy.add(pilot or "")
    return Jobs(running=len(jobs), submitting=len(pilots - busy))


def _environments() -> Iterable[Mapping[str, str]]:
    for process in psutil.process_iter():
        # It may have ended since, or be another user's.
        with contextlib.suppress(psutil.Error, OSError):
            yield process.environ()
