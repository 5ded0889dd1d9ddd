"""A user's profiles: named directories, each with the settings, the token and the login of one system.

A profile is a data directory that is found by a name. Its `client.toml` names a gateway, and how the user logs in.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from wms.bounds import printable
from wms.client.credential import TokenFile, UserCredential
from wms.client.settings import (
    FILE,
    TOKEN_FILE,
    ClientSettings,
    GatewayAddress,
    LoginSettings,
    TokenSettings,
    profile_directory,
    profiles_directory,
    read_settings,
)
from wms.errors import Rejected
from wms.files import to_toml, write_secret
from wms.gateway.address import checked_url


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile as it is listed: its system, and whose token it has."""

    name: str
    directory: str
    gateway: str = ""
    """The address of the gateway; empty if the settings name brokers."""
    issuer: str = ""
    owner: str = ""
    """The owner that the profile's token claims; empty if there is no valid token."""
    expires_at: float | None = None
    """When the token expires, in seconds since 1970; None if there is no valid token."""
    trouble: str = ""
    """Why the profile's settings cannot be used; empty if they can."""


def write_profile(
    name: str,
    gateway: GatewayAddress,
    login: LoginSettings,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Write the settings of the profile `name`, new or existing, and return its directory. An existing token is kept.

    `environment` has the variables that say where profiles are. Raise Rejected for an invalid name or address, or a setting that is too long
    or not printable.
    """
    place = profile_directory(name, environment)
    checked_url(gateway.url)
    known = ClientSettings(auth=TokenSettings(token_file=TOKEN_FILE), gateway=gateway, login=login)
    told = msgspec.to_builtins(known)
    _check(name, told)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    tables = {each: told[each] for each in ("gateway", "auth", "login")}
    write_secret(place / FILE, to_toml(tables))
    return place


def _check(name: str, told: dict[str, Any]) -> None:
    """Raise Rejected if a setting that was built here would be refused when read from a file: too long, or not printable."""
    try:
        msgspec.convert(told, ClientSettings)
    except msgspec.ValidationError as error:
        raise Rejected("BAD_OPTION", f"the profile {name}: {error}", "give a shorter text") from None
    for text in (*told["gateway"].values(), *told["login"].values()):
        if fault := printable(text):
            raise Rejected("BAD_OPTION", f"the profile {name}: {text!r} {fault}", "write it on one line")


def profiles(now: float, environment: Mapping[str, str] = os.environ) -> list[Profile]:
    """Return the user's profiles in the order of their names. `now` is in seconds since 1970; an expired token counts as none.

    `environment` has the variables that say where profiles are.
    """
    place = profiles_directory(environment)
    found = sorted(path.parent for path in place.glob(f"*/{FILE}"))
    return [_listed(each, now) for each in found]


def _listed(directory: Path, now: float) -> Profile:
    name, where = directory.name, str(directory)
    try:
        settings = read_settings(directory, {})
    except Rejected as error:
        return Profile(name=name, directory=where, trouble=str(error))
    credential = _credential(Path(settings.auth.token_file), now)
    return Profile(
        name=name,
        directory=where,
        gateway=settings.gateway.url if settings.gateway else "",
        issuer=settings.login.issuer if settings.login else "",
        owner=credential.owner if credential else "",
        expires_at=credential.expires_at if credential else None,
    )


def _credential(file: Path, now: float) -> UserCredential | None:
    try:
        return TokenFile(file).read(now)
    except Rejected:
        return None
