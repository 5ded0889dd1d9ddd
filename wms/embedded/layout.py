"""Where a system on one machine has its files, and the configuration files of its services and users."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wms.db.role_rights import TOOLS
from wms.embedded.server import Program
from wms.embedded.supervisor import LOCK_FILE
from wms.embedded.sweep import system_id
from wms.files import Table, Value, to_toml, write_secret

ISOLATION_VARIABLE = "WMS_ISOLATION"
"""The environment variable that says how pilots on this machine isolate payloads, if the configuration does not."""
SERVICES = (
    "job_manager",
    "matcher",
    "advertiser",
    "pilot_submitter",
    "agreement",
    "resource_broker",
    "gateway",
)
"""The services that `wms up` runs, in the order in which they start."""


class Layout(msgspec.Struct, frozen=True):
    """The paths of files and directories below a system's data directory `root`."""

    root: Path

    @property
    def lock(self) -> Path:
        """The lock file of the process that runs the system, with its pid. Pilots watch that process through it."""
        return self.root / LOCK_FILE

    @property
    def client(self) -> Path:
        """The file with the settings by which clients reach this system."""
        return self.root / "client.toml"

    @property
    def keys(self) -> Path:
        """The directory of the keys with which the system signs tokens."""
        return self.root / "keys"

    @property
    def jwks(self) -> Path:
        """The file with the public keys by which tokens are verified."""
        return self.keys / "jwks.json"

    @property
    def user_token(self) -> Path:
        """The file with the token of the user who runs the system."""
        return self.root / "tokens" / "user.token"

    @property
    def site_token(self) -> Path:
        """The file with the token of the advertiser, which publishes ads of this machine."""
        return self.root / "tokens" / "site.token"

    @property
    def sandboxes(self) -> Path:
        """The directory in which input and output files of jobs are stored."""
        return self.root / "sandboxes"

    @property
    def files(self) -> Path:
        """The directory with files that jobs may name by URL."""
        return self.root / "files"

    @property
    def pilots(self) -> Path:
        """The directory below which each pilot has its own."""
        return self.root / "pilots"

    def server(self, name: str) -> Path:
        """Return the directory of a server, by its name: postgres, broker or kafka."""
        return self.root / name

    def service(self, name: str) -> Path:
        """Return the directory with the configuration file and the log of a service."""
        return self.root / "services" / name


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration files of services and clients are made of: where Kafka and Postgres are, and how many slots there are."""

    layout: Layout
    kafka: Table
    postgres_url: str
    """The URL of Postgres for the owner of the schema."""
    role_urls: Mapping[str, str] = {}
    """The URLs of Postgres for services, and for `tools`, by their names; who has none takes that of the owner."""
    slots: int
    gateway_port: int = 0
    """The port of 127.0.0.1 on which the gateway listens."""
    site: str = "local"
    log_level: str = "info"
    pilots: Table = {}
    """Settings of the pilot submitter that differ from its defaults, such as `most` and `idle_seconds`."""
    pilots_over_https: bool = False
    """Whether the pilots reach services and sandboxes through the gateway alone."""

    def postgres_url_of(self, role: str) -> str:
        """Return the URL of Postgres for a service, or for `tools`."""
        return self.role_urls.get(role, self.postgres_url)

    @property
    def gateway_url(self) -> str:
        """The address of the gateway."""
        return f"http://127.0.0.1:{self.gateway_port}"


def service(name: str, facts: Facts) -> Program:
    """Write the configuration file of a service; return the program that runs the service, not yet started."""
    directory = facts.layout.service(name)
    file = directory / "config.toml"
    write_secret(file, to_toml({**_common(name, facts), **_own(name, facts)}))
    return Program(
        directory, name=name, argv=[sys.executable, "-m", f"services.{name}", "--config", str(file)]
    )


def write_client(facts: Facts) -> None:
    """Write the file with the clients' settings. Only its owner may read it, since it has the password of Postgres."""
    layout = facts.layout
    table = {
        "kafka": facts.kafka,
        "postgres": {"url": facts.postgres_url_of(TOOLS)},
        "auth": {"token_file": str(layout.user_token), "jwks": str(layout.jwks)},
        "sandboxes": {"url": layout.sandboxes.as_uri()},
        "dashboard": {"url": facts.gateway_url},
    }
    write_secret(layout.client, to_toml(table))


def _common(name: str, facts: Facts) -> dict[str, Table]:
    return {
        "kafka": facts.kafka,
        "postgres": {"url": facts.postgres_url_of(name)},
        "auth": {"jwks": str(facts.layout.jwks)},
        "log": {"level": facts.log_level},
    }


def _own(name: str, facts: Facts) -> dict[str, Table | list[Table]]:
    """Return the part of a service's configuration that others do not have."""
    layout = facts.layout
    match name:
        case "job_manager":
            return {"sandboxes": {"url": layout.sandboxes.as_uri()}}
        case "advertiser":
            element: dict[str, Value] = {"site": facts.site, "slots": facts.slots}
            return {"advertising": {"token_file": str(layout.site_token)}, "elements": [element]}
        case "gateway":
            return {
                "gateway": {"host": "127.0.0.1", "port": facts.gateway_port},
                "sandboxes": {"url": layout.sandboxes.as_uri()},
            }
        case "agreement":
            reservable: dict[str, Value] = {"ce": "local", "cpus": facts.slots}
            return {"agreement": {"site": facts.site}, "elements": [reservable]}
        case "pilot_submitter":
            pilots: dict[str, Value] = {
                "directory": str(layout.pilots),
                "local_sites": [facts.site],
                "keys": str(layout.keys),
                "lifeline": str(layout.lock),
                "system": system_id(layout.root),
                "hidden": [str(layout.root)],
                "isolation": os.environ.get(ISOLATION_VARIABLE, "auto"),
                **_over_https(facts),
                **facts.pilots,
            }
            return {
                "pilots": pilots,
                "gateway": {"url": facts.gateway_url},
                "sandboxes": {"url": layout.sandboxes.as_uri()},
                # All payloads are the owner's, as are the files of that directory and the servers of this machine.
                "transfers.access": {
                    "directories": [str(layout.files.resolve())],
                    "inner_hosts": ["localhost", "127.0.0.1"],
                },
            }
        case _:
            return {}


def _over_https(facts: Facts) -> dict[str, Value]:
    """Return the settings of pilots that reach services and sandboxes through the gateway; empty for pilots over Kafka."""
    if not facts.pilots_over_https:
        return {}
    return {"link": "gateway", "sandboxes_url": facts.gateway_url}


def default_slots() -> int:
    """Return how many payloads this machine runs at a time by default: one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
