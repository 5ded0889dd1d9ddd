"""The effort of evaluations: how many steps may still be made now, before other work of the event loop is done."""

from math import inf


class Effort:
    """The steps that are left, each of 1 to 5 ns; without end until `renew` says how many."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = inf

    def renew(self, steps: float) -> None:
        """Allow so many steps from now on."""
        self.left = steps

    def spend(self, steps: float) -> bool:
        """Return whether something may be done that takes so many steps. The last may take more than are left, so that each has its turn."""
        if self.left <= 0:
            return False
        self.left -= steps
        return True
