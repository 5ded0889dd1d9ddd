"""The configuration of the matcher."""

from typing import Annotated

from msgspec import Meta

from wms.bounds import Name
from wms.lease import LeaseTerms
from wms.matching.draw_law import Law
from wms.matching.limits import LimitRule
from wms.matching.shares import GroupShare
from wms.runtime.config import Seconds, Section, ServiceConfig, UsageSettings


class LimitSettings(LimitRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit, as `wms limits set` takes it; `*` as site, computing element or value stands for each by itself.

    `running`: at most `most` jobs at a time have a pilot there. `rate`: at most `per_second` are matched there, and `most`
    at once after a pause. `waiting`: no more than `most` jobs wait after a submission, wherever they may run.
    """


class MatchingSettings(Section, frozen=True, kw_only=True):
    """The draw, its answers, and the configured shares and limits."""

    draw: Law = "dirac"
    retry_after_seconds: Seconds = 1.0
    """Seconds after which an agent that got nothing may ask again."""
    offers_open: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 8
    """Unaccepted offers that a pilot may have beyond its slots; more for each job that it has done."""
    shares: Annotated[
        dict[Name, Annotated[dict[Name, GroupShare], Meta(max_length=10_000)]], Meta(max_length=10_000)
    ] = {}
    """Shares by VO and owner group; others have the default. `wms shares` overrides them."""
    limits: Annotated[tuple[LimitSettings, ...], Meta(max_length=100_000)] = ()
    """Limits on jobs. `wms limits` overrides them."""

    def __post_init__(self) -> None:
        for each in self.limits:
            if fault := each.fault():
                raise ValueError(f"{each.text()}: {fault}")


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    lease: LeaseTerms = LeaseTerms()
    usage: UsageSettings = UsageSettings()
    matching: MatchingSettings = MatchingSettings()
