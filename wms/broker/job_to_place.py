"""The job as the broker sees it: requirements, limits, files and preferences, with all times absolute."""

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from wms.matching.grouping import Requirements

SelectorName: TypeAlias = Literal["earliest-completion", "earliest-start"]
"""What the user wants to come first."""


class ReferenceRun(Struct, frozen=True, kw_only=True):
    """The user's word on the job's speed: it takes `seconds` on a machine where this benchmark has this result."""

    benchmark: str
    result: float
    seconds: float


class FileToMove(Struct, frozen=True, kw_only=True):
    """A file that is brought before the job runs, or taken away after it.

    `urls` are the replicas of an input, one of which is read, or the targets of an output, to each of which it goes.
    """

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    """Bytes, as the user says; None if he does not."""


class JobToPlace(Struct, frozen=True, kw_only=True):
    """What filter, predictors and selectors look at. `requirements` decide where it fits, as for every other job."""

    requirements: Requirements
    executable: str = ""
    processors: int = 1
    cpu_seconds: float | None = None
    """The most processor time that it may use, all processors together."""
    wall_seconds: float | None = None
    """The most time that it may run."""
    job_class: str = ""
    """A name that jobs share whose run times tell of each other's; empty: none."""
    runs: tuple[ReferenceRun, ...] = ()
    inputs: tuple[FileToMove, ...] = ()
    outputs: tuple[FileToMove, ...] = ()
    stage_in_seconds: float | None = None
    """The user's figure, as the last resort."""
    stage_out_seconds: float | None = None
    earliest_start: datetime | None = None
    latest_start: datetime | None = None
    """It starts by then or not at all."""
    objective: SelectorName = "earliest-completion"
    wants_reservation: bool = True
    flexible: bool = True

    @property
    def run_limit(self) -> float | None:
        """The most seconds that it can run, by its limits; None if it states none."""
        by_cpu = None if self.cpu_seconds is None else self.cpu_seconds / max(1, self.processors)
        return min((each for each in (self.wall_seconds, by_cpu) if each is not None), default=None)
