"""`wms profiles` and `--profile`: which system a command uses, and what is refused."""

import json
from pathlib import Path

import pytest

from wms.cli.__main__ import run
from wms.client.profiles import write_profile
from wms.client.settings import GatewayAddress, LoginSettings, profile_directory


@pytest.fixture(autouse=True)
def atlas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WMS_DATA", "WMS_URL", "WMS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    # Nothing answers there.
    gateway = GatewayAddress(url="http://127.0.0.1:9")
    write_profile("atlas", gateway, LoginSettings(issuer="http://far.example.org"))


def test_profiles_are_listed_and_the_one_in_use_has_a_star(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "--profile", "atlas"]) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "atlas" in each]
    assert line.split()[:3] == ["*", "atlas", "http://127.0.0.1:9"]
    assert run(["profiles", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["issuer"] == "http://far.example.org"


def test_a_command_uses_the_token_of_its_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["whoami", "--profile", "atlas"]) == 3
    assert f"no token in {profile_directory('atlas')}/user.token" in capsys.readouterr().err


def test_a_profile_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["whoami", "--profile", "cms"]) == 2
    assert f"no system in {profile_directory('cms')}" in capsys.readouterr().err


def test_a_profile_beside_another_system_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["whoami", "--profile", "atlas", "--data", str(tmp_path)]) == 2
    monkeypatch.setenv("WMS_URL", "https://other.example.org")
    assert run(["whoami", "--profile", "atlas"]) == 2
    assert capsys.readouterr().err.count("both name a system") == 2


def test_a_login_takes_the_provider_that_its_profile_remembers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["login", "--profile", "atlas"]) == 2
    assert "must begin with https://" in capsys.readouterr().err


def test_a_login_makes_a_profile_and_remembers_what_it_was_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["login", "http://far.example.org", "--profile", "cms", "--gateway", "https://g.example.org"]
    assert run([*words, "--audience", "wms"]) == 2
    assert "must begin with https://" in capsys.readouterr().err
    text = (profile_directory("cms") / "client.toml").read_text()
    assert 'url = "https://g.example.org"' in text
    assert 'audience = "wms"' in text


def test_a_gateway_without_a_profile_and_a_system_in_a_profile_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["login", "https://i.example.org", "--gateway", "https://g.example.org"]) == 2
    assert run(["up", "--profile", "atlas"]) == 2
    said = capsys.readouterr().err
    assert "--gateway is for a profile" in said
    assert "a profile is of a system elsewhere" in said
