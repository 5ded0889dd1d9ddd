"""`wms open` gives the browser the token in a file of its own, and nowhere else."""

import re
import stat
import webbrowser
from html import unescape
from pathlib import Path

import pytest

from wms.cli import dashboard
from wms.client.settings import ClientSettings, DashboardAddress, GatewayAddress, TokenSettings
from wms.errors import Rejected

TOKEN = "a.b-c_d"
AUTH = TokenSettings(token_file="user.token")


def test_the_token_is_in_the_fragment_of_the_address_alone() -> None:
    page = dashboard.handover("http://127.0.0.1:8480", TOKEN)
    (target,) = re.findall(r'content="0;url=([^"]+)"', page)
    assert unescape(target) == f"http://127.0.0.1:8480/#token={TOKEN}"
    assert "<script" not in page
    assert 'name="referrer" content="no-referrer"' in page


def test_no_address_can_break_out_of_the_page() -> None:
    page = dashboard.handover('https://h/"><script>', 'x"y')
    assert '"><script>' not in page


def test_the_file_is_its_owners_and_is_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[Path, int, str]] = []

    def opened(address: str) -> bool:
        assert TOKEN not in address
        path = Path(address.removeprefix("file://"))
        seen.append((path, stat.S_IMODE(path.stat().st_mode), path.read_text()))
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    assert dashboard._opened("https://h", TOKEN, 0.0)
    ((path, mode, text),) = seen
    assert mode == 0o600
    assert TOKEN in text
    assert not path.exists()
    assert TOKEN not in "".join(capsys.readouterr())


def test_the_file_is_deleted_if_no_browser_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def refused(address: str) -> bool:
        seen.append(address)
        return False

    monkeypatch.setattr(webbrowser, "open", refused)
    assert not dashboard._opened("https://h", TOKEN, 60.0)
    assert not Path(seen[0].removeprefix("file://")).exists()


def test_the_gateway_is_that_of_the_settings() -> None:
    with_both = ClientSettings(
        auth=AUTH, gateway=GatewayAddress(url="https://g"), dashboard=DashboardAddress(url="http://d")
    )
    assert dashboard.gateway_of(with_both) == "https://g"
    assert (
        dashboard.gateway_of(ClientSettings(auth=AUTH, dashboard=DashboardAddress(url="http://d")))
        == "http://d"
    )
    with pytest.raises(Rejected, match="no gateway"):
        dashboard.gateway_of(ClientSettings(auth=AUTH))
