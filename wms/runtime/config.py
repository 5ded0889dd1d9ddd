"""Configuration: one frozen struct for each service, from a TOML file and `WMS_` environment variables.

A variable names its key by `__`: `WMS_POSTGRES__URL` is `url` in `[postgres]`. The error about an unknown key or a wrong value names the
key.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from wms.auth.orders import ORDERS_KEY
from wms.auth.trusted_issuer import ISSUERS_LIMIT, TrustedIssuer
from wms.bounds import Line
from wms.bus.kafka import BrokerSettings
from wms.errors import Rejected
from wms.telemetry.logs import Level

PREFIX = "WMS_"
SIZE_LIMIT = 4 * 1024 * 1024
"""The largest size of a configuration file in bytes."""

T = TypeVar("T", bound=msgspec.Struct)

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=10 * 366 * 86_400)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a configuration file. Unknown keys are errors."""


class PostgresSettings(Section, frozen=True, kw_only=True):
    """Connection settings of Postgres."""

    url: Line = "postgresql://127.0.0.1:5432/wms"
    pool: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 8
    """The largest number of connections."""


class AuthSettings(Section, frozen=True, kw_only=True):
    """The key files for tokens and orders."""

    jwks: Line
    """A file with the issuers' public keys."""
    orders_key: Line = ""
    """A file with the secrets that sign orders to pilots; empty for the file `orders.key` beside `jwks`."""
    issuers: Annotated[tuple[TrustedIssuer, ...], msgspec.Meta(max_length=ISSUERS_LIMIT)] = ()
    """Other systems whose users may come in: OpenID providers, found by discovery."""

    @property
    def orders_key_file(self) -> Path:
        """The file with the secrets that sign orders to pilots."""
        return Path(self.orders_key) if self.orders_key else Path(self.jwks).with_name(ORDERS_KEY)


class LogSettings(Section, frozen=True, kw_only=True):
    """The level and the format of log messages."""

    level: Level = "info"
    json: bool = True


class UsageSettings(Section, frozen=True, kw_only=True):
    """Whether recent usage of owners reduces their shares. Job managers and matchers need the same settings."""

    half_life_hours: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0.0
    """The half-life of recorded usage in hours. At 0 usage is neither stored nor counted."""


class ServiceConfig(Section, frozen=True, kw_only=True):
    """The configuration that all services share."""

    auth: AuthSettings
    postgres: PostgresSettings = PostgresSettings()
    kafka: BrokerSettings = BrokerSettings()
    log: LogSettings = LogSettings()


def config_file(program: str, arguments: Sequence[str]) -> Path:
    """Return the file that the command line names by `--config FILE`. Any other command line prints the usage and exits."""
    match arguments:
        case ["--config", path]:
            return Path(path)
    import argparse  # only to explain: it takes as long as a sixth of a job agent's start

    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--config", type=Path, required=True, help="a TOML file")
    return Path(parser.parse_args(arguments).config)


def read(path: Path, kind: type[T], environment: Mapping[str, str]) -> T:
    """Return the configuration from the file and the environment. Raise Rejected, with the faulty key, if it is invalid."""
    try:
        with path.open("rb") as file:
            text = file.read(SIZE_LIMIT + 1)
        if len(text) > SIZE_LIMIT:
            raise Rejected("CONFIG_INVALID", f"{path}: is larger than {SIZE_LIMIT:,} bytes")
        table = tomllib.loads(text.decode())
    except OSError as error:
        raise Rejected("CONFIG_MISSING", f"{path}: {error.strerror}", "name a file with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected("CONFIG_INVALID", f"{path}: {error}") from None
    _overlay(table, environment)
    try:
        return msgspec.convert(table, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Rejected("CONFIG_INVALID", f"{path}: {error}") from None


def _overlay(table: dict[str, Any], environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        *parents, last = name.removeprefix(PREFIX).lower().split("__")
        place: Any = table
        for parent in parents:
            place = place.setdefault(parent, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise Rejected(
                "CONFIG_INVALID",
                f"the variable {name} names no key of a table",
                "lists, and the tables in them, are said in the file",
            )
        place[last] = value
