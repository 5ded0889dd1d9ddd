"""Placements of a job that failed: they send the job to the next best element, since the broker avoids theirs for a time or for good."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from wms.broker.placement import PlacementFault
from wms.db.candidate import FailedAtPlace
from wms.ids import CeId

PAUSE_SECONDS = 60.0
"""Seconds for which an element that could not be reached is avoided for a job, multiplied by the job's failures there."""


class FailedPlacement(msgspec.Struct, frozen=True):
    """A placement (a job assigned to an element) that did not start the job, with the reason as a text."""

    place: CeId
    why: str
    again_at: datetime | None = None
    """The time from which the broker may choose this element for the job again; None: only after a user acts."""


def avoided(failed: Iterable[FailedPlacement], now: datetime) -> frozenset[CeId]:
    """Return the elements that the broker must not choose for the job at the time `now`, since these placements failed there."""
    return frozenset(each.place for each in failed if each.again_at is None or each.again_at > now)


def failed_placements(failures: Iterable[FailedAtPlace]) -> tuple[FailedPlacement, ...]:
    """Return failed placements, each with the time from which its element may be chosen again for the job.

    Each further failure at the same element makes that time later.
    """
    seen: Counter[CeId] = Counter()
    found = []
    for each in failures:
        seen[each.place] += 1
        pause = _pauses(each.code, seen[each.place])
        again_at = None if pause is None else each.created_at + timedelta(seconds=PAUSE_SECONDS * pause)
        found.append(FailedPlacement(each.place, each.reason, again_at))
    return tuple(found)


def _pauses(code: str, failures: int) -> int | None:
    """Return for how many times `PAUSE_SECONDS` an element is avoided, by the failure's code and the job's failures there.

    None: until a user acts.
    """
    if code in (PlacementFault.NOT_ARRIVED, PlacementFault.RESERVATION_LOST):
        return failures - 1
    if code == PlacementFault.NOT_TOGETHER:
        return 0
    return failures if code == PlacementFault.UNREACHABLE else None
