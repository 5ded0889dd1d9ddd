"""What the pilot submitter is told."""

from wms.runtime.config import Count, Seconds, Section, ServiceConfig


class PilotSettings(Section, frozen=True, kw_only=True):
    """How pilots are made and how many."""

    directory: str
    """Below it every pilot of this machine has a directory."""
    keys: str
    """The directory with the key that signs pilots' tokens."""
    lifeline: str = ""
    """The lock file of a system on this machine, with which its pilots end."""
    system: str = ""
    """The name by which leftovers of an earlier life of this system are known."""
    most: Count = 16
    """Pilots at a time, over all elements."""
    plan_every_seconds: Seconds = 1.0
    idle_seconds: Seconds = 20.0
    grace_seconds: Seconds = 3.0
    """What a pilot that is told to end leaves its running jobs."""
    lifetime_seconds: Seconds = 1_209_600.0


class SandboxSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are, as pilots see it."""

    url: str


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    pilots: PilotSettings
    sandboxes: SandboxSettings
