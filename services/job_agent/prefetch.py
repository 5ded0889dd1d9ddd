"""Decides how much work a pilot fetches ahead, by the likely run times of its jobs.

A slot is given work for the seconds that its job leaves of the next few. A long job leaves none, so nothing waits behind it.
"""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple


class SlotTime(NamedTuple):
    """A job that a pilot holds, as it takes slots: how many, for how long in most cases (None: unknown), and since when it runs."""

    slots: int
    likely_seconds: float | None
    age: float = 0.0

    @property
    def left_seconds(self) -> float:
        """How many more seconds the job is expected to run. One that ran longer than is likely will last as long again."""
        if self.likely_seconds is None:
            return inf
        left = self.likely_seconds - self.age
        return left if left > 0 else self.age


def wanted_seconds(ahead_seconds: float, running: Iterable[SlotTime]) -> float:
    """Return how many slot seconds of work the slots of `running` jobs can take within the next `ahead_seconds`."""
    return sum(each.slots * max(0.0, ahead_seconds - each.left_seconds) for each in running)


def held_seconds(ahead_seconds: float, line: Iterable[SlotTime]) -> float:
    """Return how many slot seconds of work wait here to be started. A job of unknown length counts as `ahead_seconds`."""
    return sum(
        each.slots * (ahead_seconds if each.likely_seconds is None else each.likely_seconds) for each in line
    )
