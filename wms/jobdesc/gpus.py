"""GPUs of a job: the number that it asks for is a requirement on `GPUNumber`, which elements advertise and pilots tell of their node.

So a batch system is asked for them as for any other property of a host. A job may also state that requirement itself.
"""

import re
from typing import Final

ATTRIBUTE: Final = "GPUNumber"
"""The attribute with the number of GPUs: of an element's hosts in its ad, and of a pilot those that no job has."""
_BOUND: Final = re.compile(rf"\b{ATTRIBUTE}\s*(>=|>|==)\s*(\d{{1,4}})\b", re.IGNORECASE)


def required_gpus(gpus: int) -> str:
    """Return the requirement of a job that asks for so many GPUs; empty for none."""
    return f"other.{ATTRIBUTE} >= {gpus}" if gpus else ""


def gpus_needed(requirements: str) -> int:
    """Return how many GPUs the requirements of a job ask for: the greatest number that `GPUNumber` must reach. 0: none."""
    if "gpu" not in requirements.lower():
        return 0
    return max((int(number) + (sign == ">") for sign, number in _BOUND.findall(requirements)), default=0)
