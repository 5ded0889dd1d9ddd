"""What the matcher is told."""

from wms.lease import Terms
from wms.runtime.config import Seconds, Section, ServiceConfig
from wms.taskqueue.draw import Law
from wms.taskqueue.shares import GroupShare


class MatchingSettings(Section, frozen=True, kw_only=True):
    """How jobs are drawn."""

    draw: Law = "dirac"
    retry_after_seconds: Seconds = 1.0
    """When an agent that got nothing may ask again."""
    shares: dict[str, dict[str, GroupShare]] = {}
    """Shares by VO and owner group; one that is not named has the default. What `wms shares` sets goes before."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    lease: Terms = Terms()
    matching: MatchingSettings = MatchingSettings()
