"""A job as the resource broker sees it: requirements, limits, files and the user's preferences, with all times absolute."""

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from wms.matching.grouping import Requirements

SelectorName: TypeAlias = Literal["earliest-completion", "earliest-start"]
"""What the user wants to be earliest: the delivery of the job's outputs, or the job's start."""


class ReferenceRun(Struct, frozen=True, kw_only=True):
    """A user's statement on the job's run time: it takes `seconds` on a machine where `benchmark` has this `result`."""

    benchmark: str
    result: float
    seconds: float


class FileToMove(Struct, frozen=True, kw_only=True):
    """An input file that is transferred before the job runs, or an output file that is transferred after it.

    `urls` are the replicas of an input, any one of which is read, or the targets of an output, all of which are written.
    """

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    """The size in bytes that the user states; None if it is not stated."""


class JobToPlace(Struct, frozen=True, kw_only=True):
    """A job for which the broker seeks a computing element. `requirements` decide where it fits, as for jobs that are not brokered."""

    requirements: Requirements
    executable: str = ""
    processors: int = 1
    cpu_seconds: float | None = None
    """The job's limit of CPU time in seconds, the sum over all its processors; None: no limit."""
    wall_seconds: float | None = None
    """The job's limit of elapsed time in seconds; None: no limit."""
    job_class: str = ""
    """A name that jobs share whose run times should be alike, such as those of one owner and program; empty: none.

    Their measured run times predict each other's.
    """
    runs: tuple[ReferenceRun, ...] = ()
    inputs: tuple[FileToMove, ...] = ()
    outputs: tuple[FileToMove, ...] = ()
    stage_in_seconds: float | None = None
    """The user's estimate of the time to transfer the inputs, in seconds; used if sizes or bandwidths are unknown."""
    stage_out_seconds: float | None = None
    earliest_start: datetime | None = None
    latest_start: datetime | None = None
    """The job must start by then, or it does not run at all; None: any time."""
    objective: SelectorName = "earliest-completion"
    wants_reservation: bool = True
    flexible: bool = True
    stages_ahead: bool = False
    """Whether the element's middleware fetches its files while it waits, as for jobs that are sent directly. Else a pilot does in its slot."""

    def seconds_to_start(self, now: datetime) -> float:
        """Return the seconds until the earliest start; at most 0 if it may start at once."""
        return 0.0 if self.earliest_start is None else (self.earliest_start - now).total_seconds()

    @property
    def run_limit(self) -> float | None:
        """The most seconds that the job can run: its elapsed-time limit or CPU limit per processor, whichever is less.

        None: no limit.
        """
        by_cpu = None if self.cpu_seconds is None else self.cpu_seconds / max(1, self.processors)
        return min((each for each in (self.wall_seconds, by_cpu) if each is not None), default=None)
