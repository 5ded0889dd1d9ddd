"""Job preferences: when a job should start or end, and the user's estimates by which the broker predicts the job's times.

They follow the broker of Elmroth and Tordsson (2005, figure 3). All parts are optional. Times are in seconds here, in minutes there.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import GivenName, Moment

Objective: TypeAlias = Literal["earliest-completion", "earliest-start"]
"""What the broker minimises: the time until the results are delivered, or the time until the payload starts."""

YEAR = 366 * 86_400
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
Duration: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=YEAR)]
"""A time in seconds, up to a year."""
BENCHMARKS_LIMIT = 20


class JobBenchmark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark by which the job's run time scales: its result on some machine, and the job's run time on that machine."""

    name: GivenName
    """The name of the benchmark, such as `specFP2000`; compared without regard to case."""
    result: Positive
    """The result of the benchmark on that machine. A greater result means a faster machine."""
    seconds: Positive
    """The run time of the job on that machine in seconds, measured or estimated."""


class JobPreferences(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The preferences of a job that the broker places."""

    benchmarks: Annotated[tuple[JobBenchmark, ...], msgspec.Meta(max_length=BENCHMARKS_LIMIT)] = ()
    stage_in_seconds: Duration | None = None
    """How many seconds the user expects the fetching of the inputs to take. The broker uses it if it has no better estimate."""
    stage_out_seconds: Duration | None = None
    """How many seconds the user expects the sending of the outputs to take. The broker uses it if it has no better estimate."""
    earliest_start: Moment | None = None
    """The time before which the payload does not start."""
    earliest_start_after: Duration | None = None
    """The number of seconds after submission before which the payload does not start."""
    latest_start: Moment | None = None
    """The time by which the payload must have started; the job fails if it cannot."""
    latest_start_after: Duration | None = None
    """How many seconds after the earliest start the payload must have started; the job fails if it cannot."""
    objective: Objective = "earliest-completion"
    reservation: bool = True
    """Whether the broker may reserve slots for the job. A job without a reservation starts when slots are free."""
    flexible: bool = True
    """Whether a site may move the job's reservation between its earliest and latest start, to fill gaps in its schedule."""
