"""`wms.resource.ads`: what sites offer. Key: site and computing element."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.site import ComputingElement

TOPIC = "wms.resource.ads"

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone: times without one cannot be compared with those that have."""


class Advertise(msgspec.Struct, frozen=True, kw_only=True, tag="advertise"):
    """A computing element as it is now; forgotten `lifetime_seconds` after it was received."""

    element: ComputingElement
    advertised_at: Moment
    """By the site's clock: an older ad never replaces a newer one of the same element."""
    lifetime_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 900.0


class Withdraw(msgspec.Struct, frozen=True, kw_only=True, tag="withdraw"):
    """The element goes away now, not at the end of its ad's life."""

    site: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    ce: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    advertised_at: Moment


Ad = Advertise | Withdraw
