"""What keeps jobs and pilots from a computing element, in three words: suppress, delay, avoid.

*Suppress*: a limit that its ad states is reached, and nothing comes there until its next ad. *Delay*: too many are being
submitted there, or a rate is used up; more come later. *Avoid*: pilots die there, so that others are better.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wms.site import ComputingElement
from wms.taskqueue.allowance import Notice, notice

FEW = 3
"""So many pilots may be lost before anything is said of it."""


class Fate(NamedTuple):
    """What became of an element's pilots that ended within the last hour."""

    ended: int = 0
    lost: int = 0
    """Died before they were seen at work."""


def notices(
    element: ComputingElement, allowed: int | None, matched: int, sent: int, fate: Fate, *, fresh: bool
) -> Iterator[Notice]:
    """Yield what is to be said of an element, by what its ad lets come and what has come since."""
    if fresh:
        of_each = (notice(element, allowed, matched), notice(element, allowed, sent, "pilots"))
        yield from filter(None, of_each)
    elif allowed is not None:
        yield Notice("suppress", "nothing comes before its next ad")
    if found := avoidance(fate):
        yield found


def avoidance(fate: Fate) -> Notice | None:
    """Return why an element is better avoided; None if it is not."""
    if fate.lost < FEW or 2 * fate.lost <= fate.ended:
        return None
    return Notice("avoid", f"{fate.lost:,} of {fate.ended:,} pilots died unseen within the hour")
