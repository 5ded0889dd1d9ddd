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
    """How long an instance may take for a job's step, in seconds. After that another instance takes the step anew."""
    look_again_seconds: Seconds = 5.0
    """Seconds after which the broker tries again to place a job that fits nowhere now."""
    sites_asked: Annotated[int, Meta(ge=1, le=100)] = 3
    """How many of the best computing elements are asked for a reservation at the same time, for one job."""
    decision_seconds: Seconds = 10.0
    """How long the broker waits for sites to decide on reservations, or to confirm one, in seconds. After that it goes on without them."""
    temporary_seconds: Seconds = 60.0
    """Seconds for which a site holds a granted reservation that the broker has not confirmed. After that it expires."""
    most_attempts: Annotated[int, Meta(ge=1, le=100)] = 10
    """How many placements of a job may fail before the job is held. Failures at elements that could not be reached do not count."""
    catalogue: Line = ""
    """A JSON file with the replicas of logical file names, `{"lfn:/data/a": ["https://...", ...]}`; empty: none."""
    kept_days: Annotated[float, Meta(gt=0, le=3_660)] = 90.0
    """Days for which predictions of jobs' times and measured transfers are kept in the database. Then they are deleted."""


class RequestedIndexSettings(Section, frozen=True, kw_only=True):
    """Discovery of computing elements through index servers (servers that list elements) that users name in submissions."""

    hosts: Lines = []
    """Host patterns, such as `*.example.org`, of servers that may be asked: users' index servers and those they refer to.
    Empty: none."""
    proxy_file: Line = ""
    """The X.509 proxy file, or certificate with its key, by which the broker authenticates to index servers; read anew each time."""
    authorities: Line = ""
    """A file or directory with the certificates of trusted authorities; empty: those of this machine."""
    server_seconds: Seconds = 15.0
    """How long to wait for one index server's answer, in seconds. After that the search goes on without it."""
    whole_seconds: Seconds = 15.0
    """How long a whole search through all levels of index servers may take, in seconds. Later answers are not part of its result."""
    patience_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.5
    """How long to wait for an index server that answered before, in seconds. After that its previous answer is used."""
    servers_at_once: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """The most servers that are asked at the same time for one user."""
    document_bytes: Annotated[int, Meta(ge=1_000, le=8 * 1024 * 1024)] = 2 * 1024 * 1024
    """The most bytes of one server's answer. A server with a larger one counts as without an answer."""
    fresh_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """Seconds for which an index server's answer is used without asking the server again."""


class Config(ServiceConfig, frozen=True, kw_only=True):
    """The whole configuration file of the resource broker."""

    brokering: BrokeringSettings = BrokeringSettings()
    indexes: RequestedIndexSettings = RequestedIndexSettings()
