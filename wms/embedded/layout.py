"""The files of a system on one machine: their paths, and the contents of the configuration files for services and clients."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wms.db.role_rights import TOOLS
from wms.dispatch.confinement import Mode
from wms.embedded.server import Program
from wms.embedded.supervisor import LOCK_FILE
from wms.errors import Rejected
from wms.files import Table, Value, to_toml, write_secret
from wms.site import PRIVATE_NETWORK

ISOLATION_VARIABLE = "WMS_ISOLATION"
STOP_SECONDS = 25.0
"""The default of the seconds that running payloads have to end when the system ends."""
"""The environment variable with the method by which pilots on this machine isolate payloads.

The default is `auto`; the caller's settings override it.
"""
SERVICES = (
    "job_manager",
    "matcher",
    "advertiser",
    "pilot_submitter",
    "agreement",
    "resource_broker",
    "gateway",
)
"""The services that the command `wms up` runs, in the order in which they start."""


class Layout(msgspec.Struct, frozen=True):
    """The paths of the files and directories of a system, all below its data directory `root`."""

    root: Path

    @property
    def lock(self) -> Path:
        """The lock file that the process running the system holds. It contains the pid, and pilots watch that process through it."""
        return self.root / LOCK_FILE

    @property
    def client(self) -> Path:
        """The configuration file of clients, such as the command line, with the addresses and the token file of this system."""
        return self.root / "client.toml"

    @property
    def keys(self) -> Path:
        """The directory of the private keys with which the system signs tokens, and of the public keys."""
        return self.root / "keys"

    @property
    def jwks(self) -> Path:
        """The JSON Web Key Set file with the public keys by which services verify tokens."""
        return self.keys / "jwks.json"

    @property
    def user_token(self) -> Path:
        """The file with the token of the user who runs the system, which has all rights in it."""
        return self.root / "tokens" / "user.token"

    @property
    def site_token(self) -> Path:
        """The file with the token of the advertiser, the service that publishes this machine's offers of resources."""
        return self.root / "tokens" / "site.token"

    @property
    def sandboxes(self) -> Path:
        """The directory of the sandbox store, which keeps the input and output archives of jobs."""
        return self.root / "sandboxes"

    @property
    def files(self) -> Path:
        """The directory whose files jobs may name by `file:` URL as inputs or outputs."""
        return self.root / "files"

    @property
    def pilots(self) -> Path:
        """The directory that contains one working directory for each pilot."""
        return self.root / "pilots"

    def server(self, name: str) -> Path:
        """Return the data directory of a server. Its name is `postgres`, `broker` (the embedded Kafka broker) or `kafka` (Apache Kafka)."""
        return self.root / name

    def service(self, name: str) -> Path:
        """Return the directory with the configuration file and the log of the service of this name, such as `matcher`."""
        return self.root / "services" / name


class ConfigValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values from which the configuration files of services and clients are written: addresses, paths and settings.

    `kafka` is the table by which all connect to the broker; `slots` is how many payloads run at a time.
    """

    layout: Layout
    kafka: Table
    postgres_url: str
    """The Postgres URL of the role that owns the schema."""
    role_urls: Mapping[str, str] = {}
    """The Postgres URLs of the services and of the command line tools (`tools`), by name. A name without an entry uses `postgres_url`."""
    slots: int
    gateway_port: int = 0
    """The port on 127.0.0.1 at which the gateway listens."""
    site: str = "local"
    log_level: str = "info"
    pilots: Table = {}
    """Settings of the service `pilot_submitter` that differ from its defaults, such as `most` and `idle_seconds`."""

    def postgres_url_of(self, role: str) -> str:
        """Return the Postgres URL for a service of this name, or for the command line tools (`tools`)."""
        return self.role_urls.get(role, self.postgres_url)

    @property
    def gateway_url(self) -> str:
        """The base URL of the gateway on this machine."""
        return f"http://127.0.0.1:{self.gateway_port}"


def service(name: str, facts: ConfigValues) -> Program:
    """Write the configuration file of the service of this name. Return the program that runs the service, not started yet."""
    directory = facts.layout.service(name)
    file = directory / "config.toml"
    write_secret(file, to_toml({**_common(name, facts), **_own(name, facts)}))
    return Program(
        directory, name=name, argv=[sys.executable, "-m", f"services.{name}", "--config", str(file)]
    )


def write_client(facts: ConfigValues) -> None:
    """Write the configuration file of clients, with mode 0600, since it contains a password of Postgres."""
    layout = facts.layout
    table = {
        "kafka": facts.kafka,
        "postgres": {"url": facts.postgres_url_of(TOOLS)},
        "auth": {"token_file": str(layout.user_token), "jwks": str(layout.jwks)},
        "sandboxes": {"url": layout.sandboxes.as_uri()},
        "dashboard": {"url": facts.gateway_url},
    }
    write_secret(layout.client, to_toml(table))


def _common(name: str, facts: ConfigValues) -> dict[str, Table]:
    common: dict[str, Table] = {"kafka": facts.kafka, "log": {"level": facts.log_level}}
    if name == "advertiser":
        return common
    return {
        "postgres": {"url": facts.postgres_url_of(name)},
        "auth": {"jwks": str(facts.layout.jwks)},
        **common,
    }


def _own(name: str, facts: ConfigValues) -> dict[str, Table | list[Table]]:
    """Return the tables of a service's configuration file that no other service has in this form; empty if it has none."""
    layout = facts.layout
    match name:
        case "job_manager":
            return {"sandboxes": {"url": layout.sandboxes.as_uri()}}
        case "advertiser":
            element: dict[str, Value] = {
                "site": facts.site,
                "slots": facts.slots,
                "tags": _tags(facts),
                "directory": str(layout.pilots),
            }
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
                "hidden": [str(layout.root)],
                "isolation": isolation_of(facts.pilots),
                "stop_seconds": stop_seconds_of(facts.pilots),
                # So they need neither the broker nor the store, and can be confined.
                "link": "gateway",
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


def isolation_of(pilots: Table) -> Mode:
    """Return the mode by which pilots with these settings isolate payloads, and are confined themselves. Raise Rejected for another word."""
    word = pilots.get("isolation", os.environ.get(ISOLATION_VARIABLE, "auto"))
    match word:
        case "auto" | "required" | "none":
            return word
        case _:
            raise Rejected("BAD_ISOLATION", f"no isolation is named {word!r}", "say auto, required or none")


def stop_seconds_of(pilots: Table) -> float:
    """Return the seconds that running payloads have to end when the system ends, in pilots with these settings."""
    given = pilots.get("stop_seconds", STOP_SECONDS)
    assert isinstance(given, int | float)
    return given


def _tags(facts: ConfigValues) -> list[str]:
    """Return the tags of this machine's element: what it may be able to do. Each pilot tries it."""
    return [] if isolation_of(facts.pilots) == "none" else [PRIVATE_NETWORK]


def default_slots() -> int:
    """Return the default number of payloads that this machine runs at a time: one for each CPU that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
