"""`wms token create`: whose tokens it makes."""

from pathlib import Path

import pytest

from wms.auth.keys import generate_keys
from wms.auth.principal import Principal
from wms.auth.token import Verifier
from wms.cli.__main__ import run
from wms.runtime import clock


@pytest.fixture
def data(tmp_path: Path) -> Path:
    generate_keys(tmp_path / "keys")
    (tmp_path / "client.toml").write_text(
        f'[kafka]\nbootstrap = "127.0.0.1:9"\n[auth]\ntoken_file = "{tmp_path}/token"\njwks = "{tmp_path}/keys/jwks.json"\n'
        f'[sandboxes]\nurl = "{tmp_path}/sandboxes"\n'
    )
    return tmp_path


def made(data: Path, *words: str) -> Principal:
    assert run(["token", "create", "--data", str(data), "--to", str(data / "made"), *words]) == 0
    token = (data / "made").read_text().strip()
    return Verifier.from_file(data / "keys/jwks.json").verify(token, clock.timestamp())


def test_a_token_for_the_sites_of_an_index(data: Path) -> None:
    principal = made(data, "--owner", "nordic", "--site", "*.nordic.org", "--site", "umea")
    assert (principal.kind, principal.owner, principal.rights) == ("site", "nordic", frozenset())
    assert principal.sites == {"*.nordic.org", "umea"}


def test_a_token_is_a_users_unless_sites_are_named(data: Path) -> None:
    principal = made(data, "--owner", "ann", "--vo", "lhcb")
    assert (principal.kind, principal.vo, principal.sites) == ("user", "lhcb", frozenset())
