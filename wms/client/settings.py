"""The settings of a client: `client.toml` in the data directory of a system, as `wms up` writes it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from wms.bounds import Line
from wms.bus.kafka import KafkaSettings
from wms.errors import Rejected
from wms.files import to_toml, write_secret
from wms.gateway.address import AUTHORITIES_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE
from wms.runtime.config import Section, read

FILE = "client.toml"
VARIABLE = "WMS_DATA"
PROFILE_VARIABLE = "WMS_PROFILE"
"""The environment variable with the name of a profile. It selects that profile's directory as the data directory."""
TOKEN_FILE = "user.token"  # noqa: S105 - a name
PLACE = Path(".local/share/wms")
"""The default data directory, relative to the home directory."""
PROFILES = Path("wms/profiles")
"""The directory that holds a directory for each profile, relative to the user's configuration directory (`~/.config`)."""
_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class TokenSettings(Section, frozen=True, kw_only=True):
    """The files of the user's token and of the issuers' public keys."""

    token_file: str
    jwks: str = ""
    """The file of the issuers' public keys; a local issuer has its private keys in the same directory. Clients do not need the file."""


class StoreSettings(Section, frozen=True, kw_only=True):
    """The location of the sandbox store: a URL such as `file:///absolute/directory`, or the path of that directory."""

    url: str

    @property
    def address(self) -> str:
        """The store's address as a URL."""
        return Path(self.url).as_uri() if self.url.startswith("/") else self.url


class OperatorSettings(Section, frozen=True, kw_only=True):
    """The URL of the Postgres database. Only operators' commands about services and dead letters need it."""

    url: str


class GatewayAddress(Section, frozen=True, kw_only=True):
    """The address of a gateway, for clients that cannot reach the broker and the database."""

    url: Line
    """The URL, `https://host:port`. `http://` is allowed only for a gateway on this machine."""
    authorities: Line = ""
    """A file with the CA certificates that the client trusts; empty for those that this machine trusts."""


class LoginSettings(Section, frozen=True, kw_only=True):
    """How the user of a profile logs in. `wms login --profile NAME`, without an address, uses these settings."""

    issuer: Line
    """The URL of the OpenID provider."""
    client_id: Line = "wms-cli"
    scope: Line = "openid offline_access"
    audience: Line = ""
    resource: Line = ""
    authorities: Line = ""
    """A file with the CA certificates by which the provider's certificate is checked; empty for those that this machine trusts."""


class DashboardAddress(Section, frozen=True, kw_only=True):
    """The address of a gateway that serves the dashboard, for users whose client connects to the broker and not to a gateway."""

    url: Line
    """The URL, `https://host:port`. `http://` is allowed only for a gateway on this machine."""


class ClientSettings(Section, frozen=True, kw_only=True):
    """The settings of a client, as read from `client.toml`: how to reach the system, and the files of the token."""

    auth: TokenSettings
    kafka: KafkaSettings = KafkaSettings()
    sandboxes: StoreSettings | None = None
    postgres: OperatorSettings | None = None
    gateway: GatewayAddress | None = None
    """The gateway through which the client sends all requests. None: it connects to the broker."""
    login: LoginSettings | None = None
    dashboard: DashboardAddress | None = None
    """The gateway whose dashboard `wms open` opens; None for the gateway in `gateway`."""


def data_directory(given: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the absolute data directory: `given`, else that of `WMS_DATA`, else that of `WMS_PROFILE`, else `~/.local/share/wms`.

    Raise Rejected if the environment names both a data directory and a profile.
    """
    if given is None:
        said, profile = environment.get(VARIABLE), environment.get(PROFILE_VARIABLE)
        if profile:
            check_one_system(profile, said, environment)
            return profile_directory(profile, environment)
        given = Path(said) if said else Path.home() / PLACE
    return given.expanduser().absolute()


def profiles_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory that has one directory for each profile of the user; it need not exist."""
    said = environment.get("XDG_CONFIG_HOME")
    return (Path(said) if said else Path.home() / ".config") / PROFILES


def profile_directory(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of a profile, which need not exist. Raise Rejected if `name` is no valid profile name."""
    if not _PROFILE_NAME.fullmatch(name):
        raise Rejected(
            "BAD_PROFILE",
            f"{name!r} is no name of a profile",
            "use up to 64 letters, digits, dots, dashes and _",
        )
    return profiles_directory(environment) / name


def check_one_system(profile: str, data: object, environment: Mapping[str, str] = os.environ) -> None:
    """Raise Rejected if a data directory or `WMS_URL` is given together with a profile.

    The token of the profile must not be sent to another system.
    """
    other = f"the data directory {data}" if data else URL_VARIABLE if environment.get(URL_VARIABLE) else ""
    if other:
        raise Rejected(
            "TWO_SYSTEMS",
            f"the profile {profile} and {other} both name a system",
            f"give one of them: --profile or {PROFILE_VARIABLE}, --data or {VARIABLE}, {URL_VARIABLE}",
        )


def read_settings(
    directory: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    token: Path | None = None,
) -> ClientSettings:
    """Return the settings of the system in a data directory (None: the usual one).

    If `WMS_URL` of the environment names a gateway, only the token comes from the directory. Variables such as
    `WMS_KAFKA__BOOTSTRAP` override the file. The token file is `token`, else the path in `WMS_TOKEN`, else the one that the
    settings name, relative to the directory. Raise Rejected, with the remedy, if the directory has no system.
    """
    place = data_directory(directory, environment)
    path = place / FILE
    if url := environment.get(URL_VARIABLE):
        return _of_gateway(url, place, environment, token)
    if not path.is_file():
        raise Rejected(
            "NO_SYSTEM",
            f"there is no system in {place}: it has no {FILE}",
            "`wms up` starts one there; --data or WMS_DATA names another place, --profile or WMS_PROFILE a profile",
        )
    settings = read(path, ClientSettings, environment)
    said = environment.get(TOKEN_VARIABLE)
    chosen = token or (Path(said) if said else None)
    file = chosen.expanduser().absolute() if chosen else place / settings.auth.token_file
    return replace(settings, auth=replace(settings.auth, token_file=str(file)))


def _of_gateway(url: str, place: Path, environment: Mapping[str, str], token: Path | None) -> ClientSettings:
    """Return the settings for the gateway at `url`. Of the data directory `place` only the token is used."""
    said = environment.get(TOKEN_VARIABLE)
    chosen = token or (Path(said) if said else place / TOKEN_FILE)
    gateway = GatewayAddress(url=url, authorities=environment.get(AUTHORITIES_VARIABLE, ""))
    return ClientSettings(auth=TokenSettings(token_file=str(chosen.expanduser().absolute())), gateway=gateway)


def write_client_directory(place: Path, settings: ClientSettings, token: str) -> None:
    """Write a data directory for another user, with the system's addresses and that user's token. It has no operator's secrets.

    Raise Rejected if `place` is an operator's own directory.
    """
    file = place / FILE
    if file.is_file() and read(file, ClientSettings, {}).postgres is not None:
        raise Rejected("BAD_OPTION", f"{place} is an operator's directory", "name another with --to")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_secret(place / TOKEN_FILE, token + "\n")
    write_secret(file, to_toml({**_reach_of_others(settings), "auth": {"token_file": TOKEN_FILE}}))


def _reach_of_others(settings: ClientSettings) -> dict[str, Any]:
    """Return the tables by which other users reach a system. A broker at a Unix socket is its owner's alone, so they go through the gateway."""
    if settings.dashboard and settings.kafka.bootstrap.startswith("unix:"):
        return {"gateway": {"url": settings.dashboard.url}}
    usual = to_builtins(KafkaSettings())
    kafka = {name: value for name, value in to_builtins(settings.kafka).items() if value != usual[name]}
    sandboxes = {"sandboxes": {"url": settings.sandboxes.url}} if settings.sandboxes else {}
    dashboard = {"dashboard": {"url": settings.dashboard.url}} if settings.dashboard else {}
    return {"kafka": kafka, **sandboxes, **dashboard}
