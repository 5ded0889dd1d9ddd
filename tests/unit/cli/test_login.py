"""`wms login` and `wms logout` where no provider is asked."""

from pathlib import Path

import pytest

from wms.cli import login
from wms.cli.__main__ import run
from wms.client.login import DeviceCode, Login, login_file
from wms.files import write_secret

CODE = DeviceCode(device_code="d", user_code="AB-CD", verification_uri="https://iam.example.org/device")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_secret(tmp_path / "client.toml", '[auth]\ntoken_file = "user.token"\n')
    return tmp_path


def test_without_a_login_there_is_none_to_end(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logout", "--data", str(data)]) == 2
    assert "is not of a login" in capsys.readouterr().err


def test_what_is_no_provider_is_told_with_what_to_do(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["login", "http://far.example.org", "--data", str(data)]) == 2
    said = capsys.readouterr().err
    assert "must begin with https://" in said
    assert not login_file(data / "user.token").exists()


def test_the_user_is_told_where_to_confirm_what(capsys: pytest.CaptureFixture[str]) -> None:
    login.tell(CODE)
    said = capsys.readouterr().err
    assert "https://iam.example.org/device" in said
    assert "AB-CD" in said


def test_a_login_shows_no_secret() -> None:
    assert "secret" not in repr(
        Login(issuer="https://iam.example.org", client_id="c", refresh_token="secret")
    )
