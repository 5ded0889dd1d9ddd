"""Small descriptions, whose reading is bound to take little time. All others are read in parsing processes (`wms.parsing`)."""

from typing import Final

import msgspec

from wms.decoding import UNDECODABLE
from wms.jobdesc.description import JobDescription

SMALL_BYTES: Final = 4_096
"""The most bytes of a small description."""
SMALL_EXPRESSIONS: Final = 512
"""The most characters of its requirements and rank together."""

_decoder = msgspec.json.Decoder(JobDescription)


def is_small(raw: bytes) -> bool:
    """Return whether JSON is one small description. False for any other, whether valid or not.

    The decoder refuses series, defaults and unknown keys, and thereby all that takes more time than its bytes say.
    """
    if len(raw) > SMALL_BYTES:
        return False
    try:
        told = _decoder.decode(raw)
    except UNDECODABLE:
        return False
    return len(told.requirements) + len(told.rank) <= SMALL_EXPRESSIONS
