"""The configuration of the resource broker."""

from typing import Annotated

from msgspec import Meta

from wms.bounds import Line, Lines
from wms.runtime.config import Seconds, Section, ServiceConfig


class BrokeringSettings(Section, frozen=True, kw_only=True):
    """How jobs are placed, and how long each step may take."""

    at_once: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Jobs that one step takes at a time."""
    claim_seconds: Seconds = 30.0
    """Seconds after which another broker takes over a job whose broker has not finished the step."""
    look_again_seconds: Seconds = 5.0
    """Seconds after which a job that fits nowhere now is looked at again."""
    sites_asked: Annotated[int, Meta(ge=1, le=100)] = 3
    """The best sites that are asked for a reservation at once."""
    decision_seconds: Seconds = 10.0
    """Seconds to wait for the sites' decisions on reservations."""
    temporary_seconds: Seconds = 60.0
    """Seconds for which a site keeps an unconfirmed reservation."""
    most_attempts: Annotated[int, Meta(ge=1, le=100)] = 10
    """The most placements of a job."""
    catalogue: Line = ""
    """A JSON file with the replicas of logical names, `{"lfn:/data/a": ["https://...", ...]}`; empty for none."""
    kept_days: Annotated[float, Meta(gt=0, le=3_660)] = 90.0
    """Days for which job records and predictions are kept after the end of their job."""


class RequestedIndexSettings(Section, frozen=True, kw_only=True):
    """Discovery through the index servers that a submission names."""

    hosts: Lines = []
    """Patterns of hosts that users' index servers may be on and lead to, such as `*.example.org`; empty: none is asked."""
    proxy_file: Line = ""
    """An X.509 proxy, or a certificate with its key; read anew each time."""
    authorities: Line = ""
    """A file or a directory with the certificates of the authorities that are believed; empty: this machine's."""
    server_seconds: Seconds = 15.0
    """Seconds to wait for one server."""
    whole_seconds: Seconds = 15.0
    """Seconds for the whole hierarchy: later answers are left out this time."""
    patience_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.5
    """Seconds to wait for a server whose last answer can be used instead."""
    servers_at_once: Annotated[int, Meta(ge=1, le=1_000)] = 8
    fresh_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """Seconds for which an answer is used without asking again."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole file."""

    brokering: BrokeringSettings = BrokeringSettings()
    indexes: RequestedIndexSettings = RequestedIndexSettings()
