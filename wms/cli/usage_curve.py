"""What a job used over time, as one line of text for each kind: bars that are as high as the value is beside the greatest."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wms.cli.quantities import amount, span

if TYPE_CHECKING:
    from wms.messages.replies import Attempt

BARS = "▁▂▃▄▅▆▇█"
KIB = 1024


def sparkline(values: Sequence[float]) -> str:
    """Return one bar for each value, the highest for the greatest; values of 0 and below have the lowest."""
    most = max(values, default=0.0)
    return "".join(BARS[_step(value, most)] for value in values)


def _step(value: float, most: float) -> int:
    return max(0, min(len(BARS) - 1, round(value / most * (len(BARS) - 1)))) if most > 0 else 0


def usage_lines(attempt: "Attempt") -> list[str]:
    """Return the processors and the memory that an attempt used over time, a line each; none if it told fewer than two points."""
    points = attempt.usage_points
    if len(points) < 2:
        return []
    pairs = list(itertools.pairwise(points))
    cpus = [(later[1] - earlier[1]) / 1_000 / max(later[0] - earlier[0], 1) for earlier, later in pairs]
    memory = [later[2] * KIB for _, later in pairs]
    over = f"in {span(points[-1][0] - points[0][0])}"
    return [
        f"cpu     {sparkline(cpus)}  at most {max(cpus):.1f} processors {over}",
        f"memory  {sparkline(memory)}  at most {amount(max(memory))}",
    ]
