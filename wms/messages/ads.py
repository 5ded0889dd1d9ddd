"""`wms.resource.ads`: what sites offer. Key: site and computing element."""

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec

from wms.site import ComputingElement

TOPIC = "wms.resource.ads"
EXPRESSION_LENGTH = 65_536

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone: times without one cannot be compared with those that have."""

Text = Annotated[str, msgspec.Meta(max_length=4_096)]
Scalar: TypeAlias = bool | int | float | Text
Record: TypeAlias = dict[str, Scalar]
Several: TypeAlias = Annotated[list[Scalar | Record], msgspec.Meta(max_length=10_000)]
AttributeName = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Expression = Annotated[str, msgspec.Meta(max_length=EXPRESSION_LENGTH)]


class Advertise(msgspec.Struct, frozen=True, kw_only=True, tag="advertise"):
    """A computing element as it is now; forgotten `lifetime_seconds` after it was received."""

    element: ComputingElement
    advertised_at: Moment
    """By the site's clock: an older ad never replaces a newer one of the same element."""
    lifetime_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 900.0
    attributes: Annotated[dict[AttributeName, Scalar | Several | Record], msgspec.Meta(max_length=1_000)] = {}
    """What jobs' expressions may look at, by the names of GLUE 1.3: `other.GlueCEPolicyMaxCPUTime` is minutes."""
    expressions: Annotated[dict[AttributeName, Expression], msgspec.Meta(max_length=100)] = {}
    """Attributes that are expressions, as text: `AuthorizationCheck`."""
    requirements: Expression = ""
    """What the site demands of a job (`other`); empty: nothing."""
    observed_at: Moment | None = None
    """When the source of its numbers counted jobs: what was sent later is not among them. None: when it was advertised."""
    rank: Expression = ""
    """Which jobs the site would rather have; empty: it does not care."""


class Withdraw(msgspec.Struct, frozen=True, kw_only=True, tag="withdraw"):
    """The element goes away now, not at the end of its ad's life."""

    site: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    ce: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    advertised_at: Moment


Ad = Advertise | Withdraw
