"""Predictions: a time in seconds with the interval that holds the truth in 90 of 100 cases, and how such are combined.

Times are thought of as lognormal: they are positive, and errors are factors. So a prediction has a centre, its median, and a
*spread*, the standard deviation of the logarithm. Near zero a factor says nothing, since whoever waits for three seconds or for
ten is served as well. So logarithms are of the time plus `UNFELT` seconds.
"""

from collections.abc import Iterable, Sequence
from math import exp, hypot, isfinite, log
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from msgspec import Struct

from wms.bounds import Seconds

Part: TypeAlias = Literal["stage_in", "waiting", "execution", "stage_out", "delivery"]
"""The four tasks of the time to delivery, and the whole."""
Source: TypeAlias = Literal[
    "reservation", "free-slots", "queue-model", "history", "benchmark", "resource", "user", "replicas", "none"
]
"""What a prediction was made from. `free-slots`: the queue model of an element that has a slot for the job now; `resource`: the element's
own estimate; `none`: nothing is known, a wide guess."""

UNFELT: Final = 30.0
"""Seconds that nobody minds; see above."""
LONGEST: Final = 10 * 366 * 86_400.0
"""The longest time in seconds that is predicted: ten years."""
LEVEL: Final = 0.9
"""The share of outcomes that an interval should hold."""
_NORMAL = 1.6448536269514722
"""The normal quantile of 95 %, so that 5 % lie below an interval and 5 % above."""
_WIDEST = 12.0


class Prediction(Struct, frozen=True, kw_only=True):
    """The predicted seconds of a part of a job's way; `low` and `high` bound the truth in 90 % of the cases.

    Always 0 <= low <= seconds <= high <= `LONGEST`. `model_seconds` is what the predictor said before it was corrected by its
    errors so far: keep it with the prediction, since corrections are learned from it.
    """

    seconds: Seconds
    low: Seconds
    high: Seconds
    source: Source
    model_seconds: Seconds

    @classmethod
    def of(cls, seconds: float, spread: float, source: Source) -> Self:
        """Return the prediction with this median in seconds and this spread; nonsense is bounded."""
        centre, spread = bounded(seconds), _spread(spread)
        low, high = interval(centre, spread)
        return cls(seconds=centre, low=low, high=high, source=source, model_seconds=centre)

    @classmethod
    def exact(cls, seconds: float, source: Source) -> Self:
        """Return the prediction of a time that is known."""
        return cls.of(seconds, 0.0, source)


class Predicted(NamedTuple):
    """A prediction, and what its predictor could not use and what it used in its place."""

    prediction: Prediction
    remarks: tuple[str, ...] = ()


class Estimate(NamedTuple):
    """One predictor's median in seconds, and its spread; several are weighed by `fused`."""

    seconds: float
    spread: float
    source: Source


def bounded(seconds: float) -> float:
    """Return seconds between 0 and `LONGEST`; what is not a number is the longest time."""
    return min(max(seconds, 0.0), LONGEST) if seconds == seconds else LONGEST  # noqa: PLR0124 - finds NaN


def interval(centre: float, spread: float) -> tuple[float, float]:
    """Return the ends in seconds of the interval of a median in seconds, which it always contains."""
    factor = exp(_NORMAL * spread)
    low = (centre + UNFELT) / factor - UNFELT
    high = (centre + UNFELT) * factor - UNFELT
    return min(centre, bounded(low)), max(centre, bounded(high))


def fused(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate that several independent ones make: their logarithms weighed by the squares of their spreads.

    The source is that of the heaviest. Raises ValueError if there is none.
    """
    if not estimates:
        raise ValueError("nothing to fuse")
    weights = [1.0 / max(_spread(each.spread), 0.01) ** 2 for each in estimates]
    whole = sum(weights)
    logarithms = (log(bounded(each.seconds) + UNFELT) for each in estimates)
    centre = exp(sum(weight * each for weight, each in zip(weights, logarithms, strict=True)) / whole)
    heaviest = max(range(len(weights)), key=weights.__getitem__)
    return Estimate(max(0.0, centre - UNFELT), whole**-0.5, estimates[heaviest].source)


def total(parts: Iterable[Prediction], source: Source) -> Prediction:
    """Return the prediction of a sum of independent parts.

    Medians are added. The distances of the ends from the medians are added as the sides of a right angle, as is right for
    independent errors that are nearly normal; with skewed ones the interval is a little too low.
    """
    all_ = list(parts)
    centre = sum(each.seconds for each in all_)
    below = hypot(*(each.seconds - each.low for each in all_))
    above = hypot(*(each.high - each.seconds for each in all_))
    return Prediction(
        seconds=bounded(centre),
        low=bounded(centre - below),
        high=max(bounded(centre), bounded(centre + above)),
        source=source,
        model_seconds=bounded(centre),
    )


def _spread(spread: float) -> float:
    return min(max(spread, 0.0), _WIDEST) if isfinite(spread) else _WIDEST
