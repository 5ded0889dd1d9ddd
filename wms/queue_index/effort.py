"""The effort of evaluations: how many steps may still be made now, before other work of the event loop is done."""

from math import inf
from typing import Final

from wms.classad.cost import Cost, TooCostlyError, cost
from wms.classad.limits import WORK
from wms.classad.tree import Node

TYPICAL: Final = Cost(32, 1, 1, plain=True)
"""The cost of reading an attribute of an ad, for estimates."""
LOOK_STEPS: Final = 200
"""The steps that it takes to look whether one verdict is known: 0.7 us."""
LOOKS: Final = 5
"""How many times the steps of evaluations the steps of looks may be."""
PIECE_STEPS: Final = 10_000_000
"""The most steps of evaluations before other work of the event loop is done."""
STEPS_A_CHARACTER: Final = 340
"""The steps that it takes to look whether a text could become true: 1.7 us a character."""


def steps(tree: Node) -> int:
    """Return about how many steps an evaluation of an expression's tree takes over an ad of which no attribute is long."""
    try:
        return cost(tree, lambda _: TYPICAL).work
    except TooCostlyError:
        return WORK


class Effort:
    """The steps that are left, each of 1 to 5 ns; without end until `renew` says how many. Looks at what is known have a share of their own."""

    __slots__ = ("_looks", "left")

    def __init__(self) -> None:
        self.left = self._looks = inf

    def renew(self, steps: float = PIECE_STEPS) -> None:
        """Allow so many steps of evaluations from now on, and LOOKS times as many of looks."""
        self.left, self._looks = steps, LOOKS * steps

    def look(self, verdicts: int) -> bool:
        """Return whether it may be looked which of so many verdicts are known. Dear evaluations leave what is known to be used."""
        if self._looks <= 0:
            return False
        self._looks -= LOOK_STEPS * verdicts
        return True

    def spend(self, steps: float) -> bool:
        """Return whether something may be done that takes so many steps. The last may take more than are left, so that each has its turn."""
        if self.left <= 0:
            return False
        self.left -= steps
        return True
