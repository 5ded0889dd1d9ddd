"""Canaries: small jobs of the system itself, which test whether a computing element works.

They are recognised by their owner, a name that no user's token carries. A place closed to all other work stays open to canaries.
"""

from typing import Final

from wms.matching.grouping import Requirements

OWNER: Final = "wms:canary"
"""The owner of canaries. The colon makes it a name that no user can have."""
GROUP: Final = "wms"


def is_canary(requirements: Requirements) -> bool:
    """Return whether the requirements are those of a canary."""
    return requirements.owner == OWNER
