"""The topic `wms.resource.ads`: the ads by which sites describe their computing elements. Key: site and computing element."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Explanation, Expression, GivenName, Measure, Moment, Text, Whole
from wms.site import ComputingElement

TOPIC = "wms.resource.ads"
MOST_TROUBLES = 100

Scalar: TypeAlias = bool | Whole | Measure | Text
Record: TypeAlias = Annotated[dict[GivenName, Scalar], msgspec.Meta(max_length=1_000)]
Several: TypeAlias = Annotated[list[Scalar | Record], msgspec.Meta(max_length=10_000)]


class Advertise(msgspec.Struct, frozen=True, kw_only=True, tag="advertise"):
    """An advertiser's description (ad) of a computing element now. It expires `lifetime_seconds` after it was received."""

    element: ComputingElement
    advertised_at: Moment
    """When the ad was made, by the site's clock. An older ad never replaces a newer one of the same computing element."""
    lifetime_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 900.0
    attributes: Annotated[dict[GivenName, Scalar | Several | Record], msgspec.Meta(max_length=1_000)] = {}
    """Attributes that expressions of jobs may reference, by their names in GLUE 1.3: `other.GlueCEPolicyMaxCPUTime` is in minutes."""
    expressions: Annotated[dict[GivenName, Expression], msgspec.Meta(max_length=100)] = {}
    """Attributes whose values are ClassAd expressions, as text, such as `AuthorizationCheck`."""
    requirements: Expression = ""
    """A ClassAd expression that a job (`other`) must meet to run on the computing element; empty for none.

    Conditions on the number of jobs there belong in the field `rule` of `element`.
    """
    observed_at: Moment | None = None
    """When the ad's source counted jobs. Jobs and pilots sent later are not in its counts. None: at `advertised_at`."""
    rank: Expression = ""
    """A ClassAd expression over a job (`other`). The site prefers jobs with greater values; empty for no preference."""


class Withdraw(msgspec.Struct, frozen=True, kw_only=True, tag="withdraw"):
    """The end of a computing element's ad before its lifetime is over.

    `advertised_at` is the time of this message by the site's clock.
    """

    site: GivenName
    ce: GivenName
    advertised_at: Moment


class LoopTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with one loop of an advertiser: a text for people."""

    loop: GivenName
    text: Explanation


class AdvertiserState(msgspec.Struct, frozen=True, kw_only=True, tag="advertiser-state"):
    """A heartbeat of an advertiser, which has no database to write it to. It holds for the bearer of the token and for no other."""

    host: GivenName
    pid: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    version: GivenName
    troubles: Annotated[tuple[LoopTrouble, ...], msgspec.Meta(max_length=MOST_TROUBLES)] = ()


Ad = Advertise | Withdraw
AdvertiserMessage = Ad | AdvertiserState
