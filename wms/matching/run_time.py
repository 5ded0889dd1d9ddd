"""How long the jobs of one task queue take a slot: a moving mean with its spread, as TCP estimates round trips.

The gains and the first spread are those of V. Jacobson, "Congestion Avoidance and Control" (SIGCOMM 1988). A queue may hold jobs of
several kinds. Their spread is then large, and they count as long jobs.
"""

from collections.abc import Sequence

from msgspec import Struct

MEAN_GAIN, SPREAD_GAIN = 1 / 8, 1 / 4
"""The weight of each new run time in the mean, and of its distance from the mean in the spread."""
SPREADS = 2.0
"""How many spreads above the mean the likely time is. So few jobs take longer."""
NEWS = 0.2
"""The part by which the likely time must change to be told again."""


class RunTime(Struct, frozen=True, gc=False):
    """The seconds that a job of a queue takes a slot: the moving mean, and the moving mean distance from it."""

    mean: float
    spread: float

    @property
    def likely(self) -> float:
        """The seconds that most jobs of the queue do not exceed."""
        return self.mean + SPREADS * self.spread

    def is_news_to(self, told: "RunTime | None") -> bool:
        """Return whether this estimate differs enough from the one that was told last to be told again."""
        return told is None or abs(self.likely - told.likely) > NEWS * told.likely


def after(known: RunTime | None, seconds: Sequence[float]) -> RunTime | None:
    """Return the estimate after further jobs have taken `seconds`, in this order. None: no run time is known yet."""
    for each in seconds:
        if known is None:
            known = RunTime(each, each / 2)
        else:
            error = each - known.mean
            spread = known.spread + SPREAD_GAIN * (abs(error) - known.spread)
            known = RunTime(known.mean + MEAN_GAIN * error, spread)
    return known
