"""The configuration file of the resource broker."""

from typing import Annotated

from msgspec import Meta

from wms.bounds import Line, Lines
from wms.runtime.config import Seconds, Section, ServiceConfig


class BrokeringSettings(Section, frozen=True, kw_only=True):
    """How the resource broker places jobs, and how long each step may take."""

    at_once: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """The most jobs that one round of the broker takes."""
    claim_seconds: Seconds = 30.0
    """Seconds after which another instance takes over a job whose instance has not finished its step."""
    look_again_seconds: Seconds = 5.0
    """Seconds after which the broker tries again to place a job that fits nowhere now."""
    sites_asked: Annotated[int, Meta(ge=1, le=100)] = 3
    """How many of the best computing elements are asked for a reservation at the same time, for one job."""
    decision_seconds: Seconds = 10.0
    """Seconds that the broker waits for sites to decide on reservations that it asked for."""
    temporary_seconds: Seconds = 60.0
    """Seconds for which a site holds a reservation that the broker has not confirmed."""
    most_attempts: Annotated[int, Meta(ge=1, le=100)] = 10
    """How often a job may be placed without starting; then it is held. Attempts at elements that could not be reached do not count."""
    catalogue: Line = ""
    """A JSON file with the replicas of logical file names, `{"lfn:/data/a": ["https://...", ...]}`; empty: none."""
    kept_days: Annotated[float, Meta(gt=0, le=3_660)] = 90.0
    """Days for which predictions and measured transfers are kept."""


class RequestedIndexSettings(Section, frozen=True, kw_only=True):
    """Discovery of computing elements through the index servers that users name in submissions."""

    hosts: Lines = []
    """Host patterns, such as `*.example.org`, of servers that may be asked: users' index servers and those they refer to.
    Empty: none."""
    proxy_file: Line = ""
    """The X.509 proxy file, or certificate with its key, that is shown to index servers; read anew each time."""
    authorities: Line = ""
    """A file or directory with the certificates of trusted authorities; empty: those of this machine."""
    server_seconds: Seconds = 15.0
    """Seconds to wait for one index server's answer."""
    whole_seconds: Seconds = 15.0
    """Seconds for a whole search through all levels of index servers; later answers are left out of it."""
    patience_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.5
    """Seconds to wait for an index server whose previous answer can be used instead."""
    servers_at_once: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Servers that are asked at a time for one user."""
    document_bytes: Annotated[int, Meta(ge=1_000, le=8 * 1024 * 1024)] = 2 * 1024 * 1024
    """The most bytes of one server's answer: a larger one is no answer."""
    fresh_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """Seconds for which an index server's answer is used without asking again."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the resource broker."""

    brokering: BrokeringSettings = BrokeringSettings()
    indexes: RequestedIndexSettings = RequestedIndexSettings()
