"""How a batch job is put into a reservation, by kind of dispatcher: by a submit option, or not at all."""

from collections.abc import Mapping
from typing import Final

_OPTIONS: Final[Mapping[str, str]] = {"slurm": "reservation", "lsf": "U"}
"""The submit option that names a reservation, by kind of dispatcher. A pilot's request has it among its `attributes`."""

RESERVING: Final = tuple(sorted(_OPTIONS))
"""The kinds of dispatcher whose batch system queues a job until its reservation starts. Other kinds get the job when the reservation starts."""

SETTING_UP_SECONDS = 120
"""Seconds that a pilot of one job lasts beyond its program: to start, to ask for the job, and to store its outputs."""
STARTING_SECONDS = 20
"""Seconds that a pilot needs within a reservation beyond its program and the files: to start, and to ask for the job."""
LATE_SECONDS = 60
"""Seconds by which a pilot may start late in its reservation. A job whose time limit no longer fits into the rest is not started."""

WITHOUT_QUEUE: Final = ("local",)
"""The kinds of dispatcher that start each pilot at once, without a batch queue."""


def reservation_option(kind: str, name: str) -> dict[str, str]:
    """Return the submit option that puts a job into the reservation with this name, at a dispatcher of this kind.

    Empty without a name, or if the kind has no such option.
    """
    option = _OPTIONS.get(kind)
    return {option: name} if option and name else {}
