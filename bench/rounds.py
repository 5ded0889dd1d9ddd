"""Systems measured in turn, round after round: what disturbs the machine for a while disturbs each of them."""

from collections.abc import Sequence
from typing import Literal, Protocol

from bench.measuring import Figures, median

Kind = Literal["matching", "insertion"]
"""Of work."""
KINDS: tuple[Kind, ...] = ("matching", "insertion")


class Side(Protocol):
    """A system that has the workload, and works when it is asked to."""

    async def warm(self, kind: Kind) -> None:
        """Do what only the first round would take time for."""

    async def round(self, kind: Kind) -> float:
        """Work once more; return the jobs a second."""


async def alternate(kind: Kind, sides: Sequence[Side], rounds: int) -> list[list[float]]:
    """Warm all, then let each work in its turn, so many times; return the jobs a second of each, round by round."""
    for side in sides:
        await side.warm(kind)
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, rates in zip(sides, found, strict=True):
            rates.append(await side.round(kind))
    return found


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Figures:
    """Return how many times as fast we are: each pair, the median, and the smallest and the largest."""
    pairs = [median([mine / other]) for mine, other in zip(ours, theirs, strict=True)]
    return {"median": median(pairs), "range": [min(pairs), max(pairs)], "pairs": pairs}
