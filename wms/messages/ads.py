"""`wms.resource.ads`: what sites offer. Key: site and computing element."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Expression, GivenName, Measure, Moment, Text, Whole
from wms.site import ComputingElement

TOPIC = "wms.resource.ads"

Scalar: TypeAlias = bool | Whole | Measure | Text
Record: TypeAlias = Annotated[dict[GivenName, Scalar], msgspec.Meta(max_length=1_000)]
Several: TypeAlias = Annotated[list[Scalar | Record], msgspec.Meta(max_length=10_000)]


class Advertise(msgspec.Struct, frozen=True, kw_only=True, tag="advertise"):
    """A computing element as it is now; forgotten `lifetime_seconds` after it was received."""

    element: ComputingElement
    advertised_at: Moment
    """By the site's clock: an older ad never replaces a newer one of the same element."""
    lifetime_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 900.0
    attributes: Annotated[dict[GivenName, Scalar | Several | Record], msgspec.Meta(max_length=1_000)] = {}
    """What jobs' expressions may look at, by the names of GLUE 1.3: `other.GlueCEPolicyMaxCPUTime` is minutes."""
    expressions: Annotated[dict[GivenName, Expression], msgspec.Meta(max_length=100)] = {}
    """Attributes that are expressions, as text: `AuthorizationCheck`."""
    requirements: Expression = ""
    """What the site demands of a job (`other`); empty: nothing. What it demands of counts of jobs is the element's `rule`."""
    observed_at: Moment | None = None
    """When the source of its numbers counted jobs: what was sent later is not among them. None: when it was advertised."""
    rank: Expression = ""
    """Which jobs the site would rather have; empty: it does not care."""


class Withdraw(msgspec.Struct, frozen=True, kw_only=True, tag="withdraw"):
    """The element goes away now, not at the end of its ad's life."""

    site: GivenName
    ce: GivenName
    advertised_at: Moment


Ad = Advertise | Withdraw
