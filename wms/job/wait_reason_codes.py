"""The codes of wait reasons, each with advice for the user. The texts of wait reasons are made in `wms.why.wait_reason_text`.

The meaning of a code never changes; a new meaning gets a new code.
"""

from enum import StrEnum


class WaitCode(StrEnum):
    """Why a job waits. If several reasons apply, the first in this order is reported: it is the hardest to overcome."""

    NEVER_POSSIBLE = "NEVER_POSSIBLE"
    IMPOSSIBLE_NOW = "IMPOSSIBLE_NOW"
    ALL_AVOIDED = "ALL_AVOIDED"
    HELD_BY_LIMIT = "HELD_BY_LIMIT"
    NO_PRIVATE_PILOT = "NO_PRIVATE_PILOT"
    NO_PILOT = "NO_PILOT"
    SLOTS_BUSY = "SLOTS_BUSY"
    BEHIND_OTHERS = "BEHIND_OTHERS"
    PLACED = "PLACED"
    SOON = "SOON"


WAIT_ADVICE: dict[WaitCode, str] = {
    WaitCode.NEVER_POSSIBLE: "it will wait for ever as it is: `wms edit` changes what it asks for",
    WaitCode.IMPOSSIBLE_NOW: "ask for less, or wait until a site comes back: `wms sites` shows which are there",
    WaitCode.ALL_AVOIDED: "it waits until an element is healthy or unbanned: `wms site show` tells why each is avoided",
    WaitCode.HELD_BY_LIMIT: "it waits until jobs of its kind have ended, or the limit is raised",
    WaitCode.NO_PRIVATE_PILOT: "`wms pilot start` orders private pilots; or submit it for pilots of any type",
    WaitCode.NO_PILOT: "pilots are sent within seconds where there is room: `wms pilots` shows them",
    WaitCode.SLOTS_BUSY: "it waits until a job there ends",
    WaitCode.BEHIND_OTHERS: "its turn comes by share and priority: `wms queues` shows who else waits",
}
