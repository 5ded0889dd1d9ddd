"""Job preferences: when a job should start or end, and what its user knows that helps to predict it.

The document is that of the broker of Elmroth and Tordsson (2005, figure 3); all parts are optional. Times are seconds here and
minutes there.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import GivenName, Moment

Objective: TypeAlias = Literal["earliest-completion", "earliest-start"]
"""What the broker minimises: the time until the results are delivered, or until the payload starts."""

YEAR = 366 * 86_400
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
Duration: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=YEAR)]
"""Seconds, up to a year."""
BENCHMARKS_LIMIT = 20


class JobBenchmark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark that behaves like the job: its result on some machine, and the job's run time on that machine."""

    name: GivenName
    """The name of the benchmark, such as `specFP2000`; compared without regard to case."""
    result: Positive
    """The result of the benchmark on that machine; a greater one is faster."""
    seconds: Positive
    """The run time of the job on that machine in seconds, measured or estimated."""


class JobPreferences(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The preferences of a job that the broker places."""

    benchmarks: Annotated[tuple[JobBenchmark, ...], msgspec.Meta(max_length=BENCHMARKS_LIMIT)] = ()
    stage_in_seconds: Duration | None = None
    """The time that the user expects for fetching the inputs; used where nothing better is known."""
    stage_out_seconds: Duration | None = None
    """The time that the user expects for delivering the outputs; used where nothing better is known."""
    earliest_start: Moment | None = None
    """The payload does not start before this time."""
    earliest_start_after: Duration | None = None
    """The payload does not start within so many seconds after submission."""
    latest_start: Moment | None = None
    """The payload starts by this time, or the job fails."""
    latest_start_after: Duration | None = None
    """The payload starts within so many seconds after the earliest start, or the job fails."""
    objective: Objective = "earliest-completion"
    reservation: bool = True
    """Whether the broker may reserve slots for the job; without one it starts when it can."""
    flexible: bool = True
    """Whether a site may move a reservation within the window of starts, so that it can fill gaps."""
