"""Where a system is: `client.toml` in its data directory, as `wms up` writes it."""

import os
from collections.abc import Mapping
from pathlib import Path

from wms.bus.kafka import Settings as KafkaSettings
from wms.errors import Rejected
from wms.runtime.config import Section, read

FILE = "client.toml"
VARIABLE = "WMS_DATA"
PLACE = Path(".local/share/wms")
"""Below the home directory: where a system is unless told otherwise."""


class TokenSettings(Section, frozen=True, kw_only=True):
    """Who the user is."""

    token_file: str
    jwks: str = ""
    """The public keys of the issuers, beside which a local issuer has its private ones; the client needs none."""


class StoreSettings(Section, frozen=True, kw_only=True):
    """Where sandboxes are: `file:///absolute/directory`, or that directory."""

    url: str

    @property
    def address(self) -> str:
        """The store's address as a URL."""
        return Path(self.url).as_uri() if self.url.startswith("/") else self.url


class OperatorSettings(Section, frozen=True, kw_only=True):
    """The database itself: for operators, who look at services and dead letters; a user's tools do without."""

    url: str


class Settings(Section, frozen=True, kw_only=True):
    """What a client is told."""

    auth: TokenSettings
    kafka: KafkaSettings = KafkaSettings()
    sandboxes: StoreSettings | None = None
    postgres: OperatorSettings | None = None


def data_directory(given: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the data directory: the one given, else `WMS_DATA`, else `~/.local/share/wms`."""
    if given is None:
        said = environment.get(VARIABLE)
        given = Path(said) if said else Path.home() / PLACE
    return given.expanduser().absolute()


def read_settings(directory: Path | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the system in a data directory, or raise Rejected, saying how to get one.

    Variables such as `WMS_KAFKA__BOOTSTRAP` go before the file.
    """
    place = data_directory(directory, environment)
    path = place / FILE
    if not path.is_file():
        raise Rejected(
            "NO_SYSTEM",
            f"there is no system in {place}: it has no {FILE}",
            "`wms up` starts one there; --data or WMS_DATA names another place",
        )
    return read(path, Settings, environment)
