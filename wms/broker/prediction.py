"""Predictions: a time in seconds with an interval that contains the true time in 90 of 100 cases; and their combination.

Times are modelled as lognormal: they are positive, and errors are factors. So a prediction has a median, and a *spread*: the
standard deviation of the logarithm. Near zero a factor means little, since a wait of three seconds is as good as one of ten. So
logarithms are of the time plus `UNFELT` seconds.
"""

from collections.abc import Iterable, Sequence
from math import exp, hypot, isfinite, log
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from msgspec import Struct

from wms.bounds import Seconds

Part: TypeAlias = Literal["stage_in", "waiting", "execution", "stage_out", "delivery"]
"""The four parts of a job's time to delivery (transfer of inputs, wait, run, transfer of outputs), and the whole ("delivery")."""
Source: TypeAlias = Literal[
    "reservation", "free-slots", "queue-model", "history", "benchmark", "resource", "user", "replicas", "none"
]
"""What a prediction was made from.

`reservation`: a granted reservation. `free-slots`: the element has a free slot for the job now. `queue-model`: the element's load. `history`: past
measurements. `benchmark`: run times scaled by benchmarks. `resource`: the element's own estimate. `user`: the user's estimates. `replicas`: file
sizes and bandwidths. `none`: a guess with a wide interval.
"""

UNFELT: Final = 30.0
"""Seconds of delay that do not matter to a user. They are added to times before logarithms or ratios are taken."""
LONGEST: Final = 10 * 366 * 86_400.0
"""The upper limit of every predicted time, in seconds: ten years."""
LEVEL: Final = 0.9
"""The share of true times that a prediction's interval should contain."""
_NORMAL = 1.6448536269514722
"""The normal quantile of 95 %, so that 5 % lie below an interval and 5 % above."""
_WIDEST = 12.0


class Prediction(Struct, frozen=True, kw_only=True):
    """The predicted seconds of one part of a job's time to delivery. `low` to `high` contains the true time in 90 % of the cases.

    Always 0 <= low <= seconds <= high <= `LONGEST`. `model_seconds` is the prediction before it was corrected by past errors.
    Store it with the prediction: corrections are learned from it.
    """

    seconds: Seconds
    low: Seconds
    high: Seconds
    source: Source
    model_seconds: Seconds

    @classmethod
    def of(cls, seconds: float, spread: float, source: Source) -> Self:
        """Return the prediction with this median in seconds and this spread (standard deviation of the logarithm).

        Values out of range, infinite or NaN are replaced by the nearest or widest that is allowed.
        """
        centre, spread = bounded(seconds), _spread(spread)
        low, high = interval(centre, spread)
        return cls(seconds=centre, low=low, high=high, source=source, model_seconds=centre)

    @classmethod
    def exact(cls, seconds: float, source: Source) -> Self:
        """Return the prediction of a time in seconds that is known exactly: its interval is this time alone."""
        return cls.of(seconds, 0.0, source)


class Predicted(NamedTuple):
    """A prediction, and remarks for the user on data that its predictor lacked."""

    prediction: Prediction
    remarks: tuple[str, ...] = ()


class Estimate(NamedTuple):
    """One estimate of a time before several are combined by `fused`: its median in seconds and its spread."""

    seconds: float
    spread: float
    source: Source


def bounded(seconds: float) -> float:
    """Return `seconds` limited to 0 to `LONGEST`; NaN becomes `LONGEST`."""
    return min(max(seconds, 0.0), LONGEST) if seconds == seconds else LONGEST  # noqa: PLR0124 - finds NaN


def interval(centre: float, spread: float) -> tuple[float, float]:
    """Return the lower and upper end, in seconds, of the 90 % interval around the median `centre`, in seconds.

    `spread` is the standard deviation of the logarithm. The interval always contains the median.
    """
    factor = exp(_NORMAL * spread)
    low = (centre + UNFELT) / factor - UNFELT
    high = (centre + UNFELT) * factor - UNFELT
    return min(centre, bounded(low)), max(centre, bounded(high))


def fused(estimates: Sequence[Estimate]) -> Estimate:
    """Return the combination of independent estimates of one time: their logarithms weighted by one over the square of the spread.

    The source is that of the estimate with the largest weight. Raise ValueError if there are no estimates.
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
    """Return the prediction of the sum of independent parts; `source` is given to the result.

    The medians are added. The distances of the interval's ends from the medians are added as a root of squares. This is right for
    independent, nearly normal errors; with skewed errors the interval is a little too low.
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
