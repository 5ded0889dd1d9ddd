"""Canaries: the system's own small jobs, by which it finds out whether a computing element does what it should.

They are told by their owner, whose name tokens of users never carry: what is closed to all work is open to them.
"""

from typing import Final

from wms.matching.grouping import Requirements

OWNER: Final = "wms:canary"
"""A colon stands in no name that users have."""
GROUP: Final = "wms"


def is_canary(requirements: Requirements) -> bool:
    """Tell whether work is the system's own."""
    return requirements.owner == OWNER
