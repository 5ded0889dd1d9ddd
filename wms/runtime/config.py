"""Reads configuration: one frozen struct for each service, from a TOML file and `WMS_` environment variables.

A variable replaces a key of the file and joins table and key by `__`: `WMS_POSTGRES__URL` is `url` in `[postgres]`. The error
about an unknown key or a wrong value names the key.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from wms.auth.orders import ORDERS_KEY
from wms.auth.trusted_issuer import ISSUERS_LIMIT, TrustedIssuer
from wms.bounds import Line
from wms.bus.kafka import KafkaSettings
from wms.errors import Rejected
from wms.telemetry.logs import Level

PREFIX = "WMS_"
SIZE_LIMIT = 4 * 1024 * 1024
"""The largest size of a configuration file in bytes."""

T = TypeVar("T", bound=msgspec.Struct)

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=10 * 366 * 86_400)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of each table in a configuration file. An unknown key in the file is an error."""


class PostgresSettings(Section, frozen=True, kw_only=True):
    """How a service connects to its Postgres database."""

    url: Line = "postgresql://127.0.0.1:5432/wms"
    pool: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 8
    """The largest number of connections that the service opens."""


class AuthSettings(Section, frozen=True, kw_only=True):
    """The key files of a service: public keys that verify tokens, and secrets that sign orders to pilots."""

    jwks: Line
    """A JWKS file with the public keys of the token issuers."""
    orders_key: Line = ""
    """A file with the secrets that sign orders to pilots; empty for the file `orders.key` beside `jwks`."""
    issuers: Annotated[tuple[TrustedIssuer, ...], msgspec.Meta(max_length=ISSUERS_LIMIT)] = ()
    """OpenID providers of other organisations whose users are accepted. Their keys are found by OpenID discovery."""

    @property
    def orders_key_file(self) -> Path:
        """The path of the file with the secrets that sign orders to pilots: `orders_key`, or its default beside `jwks`."""
        return Path(self.orders_key) if self.orders_key else Path(self.jwks).with_name(ORDERS_KEY)


class LogSettings(Section, frozen=True, kw_only=True):
    """The level and the format of log messages."""

    level: Level = "info"
    json: bool = True


class UsageSettings(Section, frozen=True, kw_only=True):
    """Whether an owner's recent use of processors reduces the owner's share. Job managers and matchers need the same settings."""

    half_life_hours: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0.0
    """The half-life of recorded usage in hours. At 0 usage is neither stored nor counted."""


class ProcessConfig(Section, frozen=True, kw_only=True):
    """The tables of a configuration file that every process of the system has. It adds its own in a subclass."""

    kafka: KafkaSettings = KafkaSettings()
    log: LogSettings = LogSettings()


class ServiceConfig(ProcessConfig, frozen=True, kw_only=True):
    """The tables that every service with a database has."""

    auth: AuthSettings
    postgres: PostgresSettings = PostgresSettings()


def config_file(program: str, arguments: Sequence[str]) -> Path:
    """Return the path that the command line gives by `--config FILE`. `arguments` are those after the program's name.

    For any other command line, help or a usage error is printed and the process exits.
    """
    match arguments:
        case ["--config", path]:
            return Path(path)
    import argparse  # only to explain: it takes as long as a sixth of a job agent's start

    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--config", type=Path, required=True, help="a TOML file")
    return Path(parser.parse_args(arguments).config)


def read(path: Path, kind: type[T], environment: Mapping[str, str], *, strict: bool = True) -> T:
    """Return the configuration of the class `kind` from the TOML file `path` and the variables of `environment`.

    If it is not `strict`, keys that `kind` does not have are passed over, as in a message: a newer version may write them. Raise
    Rejected if the file is missing, too large or invalid. The error names the faulty key or variable.
    """
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
        return msgspec.convert(table if strict else _known(table, kind), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Rejected("CONFIG_INVALID", f"{path}: {error}") from None


def _known(table: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a table, and the tables in it, without the keys that `kind` does not have."""
    kinds = {each.encode_name: each.type for each in msgspec.structs.fields(kind)}
    return {
        name: _known(value, kinds[name])
        if isinstance(value, dict)
        and isinstance(kinds[name], type)
        and issubclass(kinds[name], msgspec.Struct)
        else value
        for name, value in table.items()
        if name in kinds
    }


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
