"""Canaries: small test jobs of the system's own, by which it tries whether a computing element works.

They are recognised by their owner, a name that no user's token carries. A site or computing element that is closed to all other jobs
still takes canaries.
"""

from typing import Final

from wms.matching.grouping import Requirements

OWNER: Final = "wms:canary"
"""The owner of canaries. The colon makes it a name that no user can have."""
GROUP: Final = "wms"


def is_canary(requirements: Requirements) -> bool:
    """Return whether requirements are those of a canary, by their owner."""
    return requirements.owner == OWNER
