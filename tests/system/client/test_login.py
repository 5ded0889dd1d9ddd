"""Logging in by the device flow at a real OpenID provider: confirmed as in a browser, renewed, ended."""

import asyncio
from pathlib import Path

import pytest

from tests.openid_provider import OpenIdProvider, ec_key
from wms.client import login as logins
from wms.client.credential import TokenFile
from wms.client.login import DeviceCode, Login
from wms.errors import Rejected, Unavailable
from wms.runtime import clock

FAR = 1e9


class Person:
    """Who is told a code, and confirms it in a browser as a user of the provider."""

    def __init__(self, provider: OpenIdProvider, name: str = "alice") -> None:
        self.provider = provider
        self.name = name
        self.confirming: asyncio.Task[None] | None = None

    def told(self, code: DeviceCode) -> None:
        browsing = self.provider.confirm(code.verification_uri_complete, self.name)
        self.confirming = asyncio.get_running_loop().create_task(browsing)


async def logged_in(provider: OpenIdProvider, token_file: Path) -> Login:
    await provider.start(ec_key("only"))
    login = Login(issuer=provider.issuer, client_id="wms-cli")
    person = Person(provider)
    credential = await logins.log_in(login, token_file, person.told)
    assert person.confirming is not None
    await person.confirming
    assert credential.owner == f"{provider.issuer}#alice"
    kept = logins.read_login(token_file)
    assert kept is not None
    return kept


async def test_a_login_is_confirmed_kept_renewed_and_ended(provider: OpenIdProvider, tmp_path: Path) -> None:
    token_file = tmp_path / "profile" / "user.token"
    kept = await logged_in(provider, token_file)
    for each in (token_file, logins.login_file(token_file)):
        assert each.stat().st_mode & 0o777 == 0o600
    now = clock.timestamp()
    first = TokenFile(token_file).read(now)
    assert first.claims["wlcg.groups"] == ["/atlas", "/atlas/production"]
    assert "refresh" not in repr(kept)

    # It is renewed only when it is about to end, and once by all who find that at a time.
    assert not await logins.renew(token_file, now)
    about_to_end = first.expires_at - logins.RENEW_SECONDS
    renewed = await asyncio.gather(*(asyncio.to_thread(_renew, token_file, about_to_end) for _ in range(3)))
    second = TokenFile(token_file).read(now)
    assert renewed.count(True) >= 1
    assert second.token != first.token

    ended = await logins.log_out(token_file)
    assert not token_file.exists()
    assert logins.read_login(token_file) is None
    logins.login_file(token_file).write_bytes(_encoded(ended))
    logins.login_file(token_file).chmod(0o600)
    with pytest.raises(Rejected, match="LOGIN_ENDED"):
        await logins.renew(token_file, now)


def _renew(token_file: Path, now: float) -> bool:
    return asyncio.run(logins.renew(token_file, now, within=logins.RENEW_SECONDS + 1))


def _encoded(login: Login) -> bytes:
    import msgspec

    return msgspec.json.encode(login)


async def test_a_provider_that_is_away_ends_no_login(provider: OpenIdProvider, tmp_path: Path) -> None:
    token_file = tmp_path / "user.token"
    await logged_in(provider, token_file)
    provider.stop()
    with pytest.raises(Unavailable):
        await logins.renew(token_file, clock.timestamp(), within=FAR)
    assert logins.read_login(token_file) is not None
    await logins.log_out(token_file)
    assert not token_file.exists()


async def test_what_a_provider_refuses_is_told(provider: OpenIdProvider, tmp_path: Path) -> None:
    await provider.start(ec_key("only"))
    stranger = Login(issuer=provider.issuer, client_id="nobody")
    with pytest.raises(Rejected, match="LOGIN_REFUSED"):
        await logins.log_in(stranger, tmp_path / "user.token", lambda _: None)
    assert list(tmp_path.glob("user.token*")) == []


@pytest.mark.parametrize(
    "url", ["http://far.example.org", "https://user@example.org", "file:///etc/passwd", "x"]
)
async def test_what_is_no_provider_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Rejected, match="ISSUER_INVALID"):
        await logins.log_in(Login(issuer=url, client_id="c"), tmp_path / "user.token", lambda _: None)


async def test_a_token_that_is_of_no_login_is_left_alone(tmp_path: Path) -> None:
    token_file = tmp_path / "user.token"
    token_file.write_text("x")
    assert not await logins.renew(token_file, FAR)
    with pytest.raises(Rejected, match="NOT_LOGGED_IN"):
        await logins.log_out(token_file)
    assert token_file.exists()


async def test_a_login_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    token_file = tmp_path / "user.token"
    logins.login_file(token_file).write_text("{}")
    logins.login_file(token_file).chmod(0o644)
    with pytest.raises(Rejected, match="LOGIN_INVALID"):
        logins.read_login(token_file)
