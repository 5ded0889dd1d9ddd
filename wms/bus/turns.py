"""Turns of owners: which messages are handled at once, and which are parked in the database so that other owners need not wait."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from wms.bus.budget import Budget
from wms.bus.delivery import Decoded
from wms.fairness import levelled

M = TypeVar("M")

SECONDS_A_SECOND, BURST_SECONDS = 0.25, 2.0
"""The processing time that an owner may use before its messages are parked: seconds regained each second, and the largest balance."""
PATIENCE_SECONDS = 2.0
"""If all unread messages would take longer than this, in seconds, messages of owners without time left are parked at once."""

Whose = tuple[int, str]
"""A partition and an owner of messages. Messages of the same owner and partition are handled in their order."""


class Turns:
    """How much processing time each owner has left, how many of its messages are parked, and whose turn is next.

    Times `now` are in monotonic seconds.
    """

    def __init__(self) -> None:
        self._budget = Budget(SECONDS_A_SECOND, BURST_SECONDS)
        self._parked: dict[Whose, int] = {}
        self._used: dict[str, float] = {}
        """The seconds that each owner's parked messages took to handle. It begins anew when no messages are parked."""

    def load(self, parked: Mapping[Whose, int]) -> None:
        """Replace the numbers of parked messages, by partition and owner, with those in `parked`."""
        self._parked = dict(parked)

    def split(
        self, batch: Sequence[Decoded[M]], now: float, behind_seconds: float
    ) -> tuple[list[Decoded[M]], list[Decoded[M]]]:
        """Divide a batch into messages to handle now and messages to park.

        A message is parked if earlier ones of its owner are, or if the owner has no time left and other owners' messages wait. `behind_seconds` is
        how long all unread messages would take.
        """
        contended = behind_seconds > PATIENCE_SECONDS or len({each.owner for each in batch if each.owner}) > 1
        good: list[Decoded[M]] = []
        deferred: list[Decoded[M]] = []
        for each in batch:
            waits = each.fault is None and each.owner and self._waits(each, now, contended=contended)
            (deferred if waits else good).append(each)
        return good, deferred

    def _waits(self, each: Decoded[M], now: float, *, contended: bool) -> bool:
        if (each.record.partition, each.owner) in self._parked:
            return True
        return contended and self._budget.left(each.owner, now) <= 0

    def spent(self, batch: Iterable[Decoded[M]], seconds: float, now: float) -> None:
        """Charge the owners of a batch for the `seconds` seconds that it took, in proportion to the bytes of their messages."""
        sizes: dict[str, int] = {}
        for each in batch:
            sizes[each.owner] = sizes.get(each.owner, 0) + each.size + 1
        whole = sum(sizes.values())
        for owner, size in sizes.items():
            self._budget.spend(owner, seconds * size / whole, now)

    def parked(self, deferred: Iterable[Decoded[M]]) -> None:
        """Count these messages as parked now."""
        for each in deferred:
            whose = each.record.partition, each.owner
            self._parked[whose] = self._parked.get(whose, 0) + 1

    def next(self) -> Whose | None:
        """Return the partition and owner whose parked messages are next; None if none are parked.

        It is the owner that used the least processing time.
        """
        if not self._parked:
            self._used.clear()
            return None
        self._used = levelled(self._used, {owner for _, owner in self._parked}, 0.0)
        return min(self._parked, key=lambda whose: (self._used[whose[1]], whose))

    def parked_of(self, whose: Whose) -> int:
        """Return how many messages of this partition and owner are parked, by the counts in memory."""
        return self._parked.get(whose, 0)

    def took(self, whose: Whose, seconds: float, gone: int, now: float) -> None:
        """Store that `gone` parked messages of this partition and owner were handled or had vanished. The work took `seconds` seconds."""
        self._used[whose[1]] = self._used.get(whose[1], 0.0) + seconds
        self._budget.spend(whose[1], seconds, now)
        left = self._parked.get(whose, 0) - gone
        if left > 0:
            self._parked[whose] = left
        else:
            self._parked.pop(whose, None)

    @property
    def waiting(self) -> int:
        """How many messages are parked in total."""
        return sum(self._parked.values())
