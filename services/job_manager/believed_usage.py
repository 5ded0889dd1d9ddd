"""How much of what a pilot says that an attempt used is believed: no more time than the attempt was with it.

Usage counts against the shares of owners, and run times decide how many jobs pilots are given. So a pilot that lies could take an owner's
share for months, by one job.
"""

from typing import Final

import msgspec

from wms.lease import DRIFT
from wms.messages.reports import Result
from wms.site import MAX_PROCESSORS

CLOCK_SECONDS: Final = 5.0
"""The seconds by which an attempt may have been longer, since the database's clock may have been corrected meanwhile."""


def believed(result: Result, held_seconds: float) -> Result:
    """Return a result with its times cut to what `held_seconds` allow: the seconds since the job was offered to the pilot."""
    most = max(held_seconds, 0.0) * (1 + DRIFT) + CLOCK_SECONDS
    usage = result.usage
    if max(usage.wall_seconds, result.slot_seconds, usage.cpu_user_seconds, usage.cpu_system_seconds) <= most:
        return result
    return msgspec.structs.replace(
        result,
        slot_seconds=min(result.slot_seconds, most),
        usage=msgspec.structs.replace(
            usage,
            wall_seconds=min(usage.wall_seconds, most),
            cpu_user_seconds=min(usage.cpu_user_seconds, most * MAX_PROCESSORS),
            cpu_system_seconds=min(usage.cpu_system_seconds, most * MAX_PROCESSORS),
        ),
    )
