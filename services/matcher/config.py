"""The configuration file of the matcher."""

from typing import Annotated

from msgspec import Meta

from wms.bounds import Name
from wms.lease import LeaseDurations
from wms.matching.draw_law import Law
from wms.matching.limits import LimitRule
from wms.matching.shares import GroupShare
from wms.runtime.config import Seconds, Section, ServiceConfig, UsageSettings


class LimitSettings(LimitRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on jobs, with the fields of `wms limits set`. `*` as site, computing element or value makes a separate limit for each.

    `running`: at most `most` jobs are with pilots at the site or element at a time. `rate`: at most `per_second` jobs are matched there, and up to
    `most` at once after a pause. `waiting`: a submission is refused if more than `most` jobs would wait after it, at any place.
    """


class MatchingSettings(Section, frozen=True, kw_only=True):
    """How the matcher draws jobs and answers pilots, and the shares and limits that it stores at its start."""

    draw: Law = "dirac"
    retry_after_seconds: Seconds = 1.0
    """Seconds after which a job agent that got no job may ask again."""
    offers_open: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 8
    """How many unaccepted offers a pilot may have beyond its slots, before it has done any job. Each job that it has done allows more."""
    shares: Annotated[
        dict[Name, Annotated[dict[Name, GroupShare], Meta(max_length=10_000)]], Meta(max_length=10_000)
    ] = {}
    """The shares of groups, by VO and group name; other groups have the default share. `wms shares` overrides them."""
    limits: Annotated[tuple[LimitSettings, ...], Meta(max_length=100_000)] = ()
    """Limits on jobs. `wms limits` overrides them."""

    def __post_init__(self) -> None:
        for each in self.limits:
            if fault := each.fault():
                raise ValueError(f"{each.text()}: {fault}")


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the matcher."""

    lease: LeaseDurations = LeaseDurations()
    usage: UsageSettings = UsageSettings()
    matching: MatchingSettings = MatchingSettings()
