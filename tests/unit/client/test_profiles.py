"""Profiles: systems of a user under names, each with settings, a token and a login of its own."""

import stat
from pathlib import Path

import pytest

from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.client.profiles import profiles, write_profile
from wms.client.settings import (
    FILE,
    GatewayAddress,
    LoginSettings,
    data_directory,
    profile_directory,
    read_settings,
)
from wms.errors import Rejected
from wms.files import write_secret

NOW = 1_770_000_000.0
GATEWAY = GatewayAddress(url="https://wms.example.org", authorities="/etc/ca.pem")
LOGIN = LoginSettings(issuer="https://iam.example.org", audience="wms")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_a_profile_is_a_data_directory_under_a_name(environment: dict[str, str]) -> None:
    place = write_profile("atlas", GATEWAY, LOGIN, environment)
    assert place == data_directory(None, environment | {"WMS_PROFILE": "atlas"})
    assert stat.S_IMODE((place / FILE).stat().st_mode) == 0o600
    settings = read_settings(None, environment | {"WMS_PROFILE": "atlas"})
    assert (settings.gateway, settings.login) == (GATEWAY, LOGIN)
    assert settings.auth.token_file == str(place / "user.token")


def test_profiles_are_listed_with_who_is_logged_in_until_when(
    environment: dict[str, str], tmp_path: Path
) -> None:
    generate_keys(tmp_path / "keys")
    key = load_key(tmp_path / "keys" / "issuer.pem")
    for name in ("cms", "atlas", "ended"):
        write_profile(name, GATEWAY, LOGIN, environment)
    for name, owner, lifetime in (("atlas", "alice", 3_600.0), ("ended", "bob", 10.0)):
        token = mint(key, Claims(kind="user", owner=owner, group="g", vo="v"), lifetime, NOW)
        write_secret(profile_directory(name, environment) / "user.token", token)
    (profile_directory("cms", environment) / FILE).write_text("nonsense")
    atlas, cms, ended = profiles(NOW + 60, environment)
    assert (atlas.name, atlas.owner, atlas.expires_at) == ("atlas", "alice", NOW + 3_600)
    assert (atlas.gateway, atlas.issuer) == (GATEWAY.url, LOGIN.issuer)
    assert (ended.name, ended.owner, ended.expires_at) == ("ended", "", None)
    assert cms.trouble


def test_a_profile_is_changed_and_its_token_stays(environment: dict[str, str]) -> None:
    token = write_profile("atlas", GATEWAY, LOGIN, environment) / "user.token"
    write_secret(token, "kept")
    write_profile("atlas", GatewayAddress(url="https://new.example.org"), LOGIN, environment)
    assert token.read_text() == "kept"
    assert profiles(NOW, environment)[0].gateway == "https://new.example.org"


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "a/b", "-x", "a" * 65, "a\n"])
def test_what_is_no_name_is_refused(name: str, environment: dict[str, str]) -> None:
    with pytest.raises(Rejected, match="no name of a profile"):
        profile_directory(name, environment)


@pytest.mark.parametrize("url", ["http://far.example.org", "ftp://x", "wms.example.org", "https://a\nb"])
def test_an_address_that_no_token_may_go_to_is_refused(url: str, environment: dict[str, str]) -> None:
    with pytest.raises(Rejected):
        write_profile("atlas", GatewayAddress(url=url), LOGIN, environment)
    assert profiles(NOW, environment) == []


def test_a_profile_beside_another_system_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(Rejected, match="both name a system"):
        data_directory(None, environment | {"WMS_PROFILE": "atlas", "WMS_DATA": "/there"})
    with pytest.raises(Rejected, match="both name a system"):
        read_settings(None, environment | {"WMS_PROFILE": "atlas", "WMS_URL": "https://x.example.org"})
