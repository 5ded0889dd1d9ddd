"""Logging in at an OpenID provider by the device flow (RFC 8628): a code that the user confirms in a browser of any machine.

The access token goes into the token file, and the refresh token into a file beside it. Both are readable by their owner
alone. Many providers invalidate a refresh token at its first use. So one process at a time renews the tokens, and the others read the
new access token from the file.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Final, TypeVar

import aiohttp
import msgspec

from wms import web
from wms.auth.trusted_issuer import address_fault
from wms.bounds import Line, Text
from wms.client.credential import LIMIT, UserCredential, decode
from wms.decoding import UNDECODABLE
from wms.errors import Rejected, Unavailable, shown
from wms.files import write_secret
from wms.web import WebIdentity

LOGIN_FILE: Final = "login.json"
SCOPES: Final = "openid offline_access"
ANSWER_BYTES: Final = 65_536
CALL_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 120.0
"""How many seconds before its expiry an access token is renewed."""
LOOK_SECONDS: Final = 30.0
SLOWER_SECONDS: Final = 5.0
"""How many seconds are added to the pause between two requests for the token when the provider answers `slow_down` (RFC 8628)."""
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"

A = TypeVar("A", bound=msgspec.Struct)


class OpenIdEndpoints(msgspec.Struct, frozen=True):
    """The endpoints in a provider's OpenID discovery document that logging in needs."""

    issuer: Line
    token_endpoint: Line
    device_authorization_endpoint: Line = ""
    revocation_endpoint: Line = ""


class DeviceCode(msgspec.Struct, frozen=True):
    """A provider's answer to a request to log in: the code, the page where the user confirms it, and how often to ask for the token."""

    device_code: Text
    user_code: Line
    verification_uri: Line
    verification_uri_complete: Line = ""
    expires_in: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 600.0
    interval: Annotated[float, msgspec.Meta(ge=0, le=600)] = 5.0


class IssuedTokens(msgspec.Struct, frozen=True):
    """The access token and refresh token that a provider issued. `repr` does not show them."""

    access_token: Annotated[str, msgspec.Meta(min_length=1, max_length=LIMIT)]
    refresh_token: Annotated[str, msgspec.Meta(max_length=LIMIT)] = ""

    def __repr__(self) -> str:
        return "IssuedTokens()"


class Login(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A login at an OpenID provider, as kept in a file beside the token: the provider, what was requested, and the refresh token."""

    issuer: Line
    client_id: Line
    scope: Line = SCOPES
    audience: Line = ""
    """The audience to request for the token, sent as the parameter `audience`; empty if the provider needs none there."""
    resource: Line = ""
    """The audience to request for the token, sent as the parameter `resource` (RFC 8707); empty if the provider needs none there."""
    authorities: Line = ""
    refresh_token: Annotated[str, msgspec.Meta(max_length=LIMIT)] = ""

    def __repr__(self) -> str:
        return f"Login({self.issuer!r})"


class _Fault(msgspec.Struct, frozen=True):
    error: Line = ""
    error_description: Text = ""


async def log_in(login: Login, token_file: Path, tell: Callable[[DeviceCode], None]) -> UserCredential:
    """Log in at a provider, write the access token and the login to their files, and return the access token.

    `tell` shows the user the code and the page where to confirm it; the call waits until the user has done so.

    Raise Rejected if the provider refuses (LOGIN_REFUSED), the address is no OpenID provider (ISSUER_INVALID), or the user did not
    confirm in time (LOGIN_EXPIRED). Raise Unavailable if the provider does not answer.
    """
    async with _session(login) as session:
        provider = await _discovered(session, login)
        if not provider.device_authorization_endpoint:
            raise Rejected(
                "LOGIN_REFUSED", f"{login.issuer} offers no device flow", "ask its operator for a token"
            )
        asked = {"client_id": login.client_id, "scope": login.scope, **_wanted(login)}
        code = await _post(session, provider.device_authorization_endpoint, asked, DeviceCode)
        tell(code)
        issued = await _confirmed(session, provider, login, code)
    return _keep(login, issued, token_file)


async def renew(token_file: Path, now: float, *, within: float = RENEW_SECONDS) -> bool:
    """Renew the access token of a login if it expires less than `within` seconds after `now`. Return whether it was renewed.

    `now` is in seconds since 1970. Raise Rejected (LOGIN_ENDED) if the provider refuses, Unavailable if the provider does not answer.
    """
    if read_login(token_file) is None or not _ends(token_file, now + within):
        return False
    with _alone(token_file):
        login = read_login(token_file)
        if login is None or not login.refresh_token or not _ends(token_file, now + within):
            return False
        async with _session(login) as session:
            provider = await _discovered(session, login)
            form = {
                "grant_type": "refresh_token",
                "refresh_token": login.refresh_token,
                "client_id": login.client_id,
            }
            try:
                issued = await _post(session, provider.token_endpoint, form, IssuedTokens)
            except _Refused as refused:
                raise Rejected(
                    "LOGIN_ENDED", f"your login has ended: {refused.why}", "`wms login` anew"
                ) from None
        _keep(login, issued, token_file)
    return True


async def keep_fresh(token_file: Path, now: Callable[[], float]) -> None:
    """Renew the access token of a login whenever it is about to expire, until cancelled. Return if the token is not of a login.

    `now` returns the time in seconds since 1970. Raise Rejected (LOGIN_ENDED) if the provider refuses to renew.
    """
    while read_login(token_file) is not None:
        with contextlib.suppress(Unavailable):
            await renew(token_file, now())
        await asyncio.sleep(LOOK_SECONDS)


async def log_out(token_file: Path) -> Login:
    """End a login: delete its file and the token file, and return the login that was ended.

    The provider is asked to revoke the refresh token; a provider that does not answer is ignored. Raise Rejected (NOT_LOGGED_IN) if the
    token is not of a login.
    """
    login = read_login(token_file)
    if login is None:
        raise Rejected("NOT_LOGGED_IN", f"{token_file} is not of a login", "`wms login URL` logs in")
    # The files go in any case; the provider ends the login by itself later.
    with contextlib.suppress(Unavailable, Rejected):
        await _revoke(login)
    for each in (login_file(token_file), token_file):
        each.unlink(missing_ok=True)
    return login


def login_file(token_file: Path) -> Path:
    """Return the path of the file that keeps the login of a token file. It is in the same directory."""
    return token_file.with_name(LOGIN_FILE)


def read_login(token_file: Path) -> Login | None:
    """Return the login that a token file belongs to; None if the token is not of a login.

    Raise Rejected (LOGIN_INVALID) if the login's file is readable by others or cannot be parsed.
    """
    path = login_file(token_file)
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise Rejected("LOGIN_INVALID", f"others may read {path}", f"chmod 600 {path}")
            return msgspec.json.decode(file.read(4 * LIMIT), type=Login)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected("LOGIN_INVALID", f"{path}: {type(error).__name__}", "`wms login` anew") from None


async def _confirmed(
    session: aiohttp.ClientSession, provider: OpenIdEndpoints, login: Login, code: DeviceCode
) -> IssuedTokens:
    """Ask for the tokens until the user has confirmed the code, and return them.

    Raise Rejected (LOGIN_EXPIRED) if the code has expired, or _Refused if the provider refuses.
    """
    form = {
        "grant_type": DEVICE_GRANT,
        "device_code": code.device_code,
        "client_id": login.client_id,
        **_wanted(login),
    }
    pause = code.interval
    try:
        async with asyncio.timeout(code.expires_in):
            while True:
                await asyncio.sleep(pause)
                try:
                    return await _post(session, provider.token_endpoint, form, IssuedTokens)
                except _Refused as refused:
                    pause += _patience(refused)
    except TimeoutError:
        raise Rejected("LOGIN_EXPIRED", "nobody confirmed the code in time", "`wms login` anew") from None


def _patience(refused: "_Refused") -> float:
    """Return how many seconds longer to wait before the next request, after a refusal that allows one. Raise any other refusal."""
    match refused.error:
        case "authorization_pending":
            return 0.0
        case "slow_down":
            return SLOWER_SECONDS
        case _:
            raise refused


async def _revoke(login: Login) -> None:
    async with _session(login) as session:
        provider = await _discovered(session, login)
        if provider.revocation_endpoint and login.refresh_token:
            form = {
                "token": login.refresh_token,
                "token_type_hint": "refresh_token",
                "client_id": login.client_id,
            }
            await _send(session, provider.revocation_endpoint, form)


def _wanted(login: Login) -> dict[str, str]:
    said = {"audience": login.audience, "resource": login.resource}
    return {name: value for name, value in said.items() if value}


def _keep(login: Login, issued: IssuedTokens, token_file: Path) -> UserCredential:
    credential = decode(issued.access_token.encode(), "what the provider issued")
    token_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = msgspec.structs.replace(login, refresh_token=issued.refresh_token or login.refresh_token)
    # First what cannot be had again: the provider takes the old refresh token no more.
    write_secret(login_file(token_file), msgspec.json.encode(kept).decode() + "\n")
    write_secret(token_file, issued.access_token + "\n")
    return credential


def _ends(token_file: Path, at: float) -> bool:
    try:
        with token_file.open("rb") as file:
            return decode(file.read(LIMIT).strip(), str(token_file)).expires_at <= at
    except (OSError, Rejected):
        return True


@contextmanager
def _alone(token_file: Path) -> Iterator[None]:
    """Hold the lock of a login in the `with` block, so that one process at a time renews it. A process that dies frees the lock."""
    with token_file.with_name(f".{LOGIN_FILE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- the provider -----------------------------------------------------------------------------------------------------


class _Refused(Rejected):
    """A refusal by the provider, with its explanation (`why`) and its OAuth error code (`error`)."""

    def __init__(self, fault: _Fault) -> None:
        self.why = shown(fault.error_description or fault.error or "it does not say why")
        self.error = fault.error
        super().__init__("LOGIN_REFUSED", f"the provider refuses: {self.why}", "`wms login` anew")


def _session(login: Login) -> AbstractAsyncContextManager[aiohttp.ClientSession]:
    return web.json_session(login.issuer, WebIdentity(authorities=login.authorities), CALL_SECONDS)


async def _discovered(session: aiohttp.ClientSession, login: Login) -> OpenIdEndpoints:
    if fault := address_fault(login.issuer):
        raise Rejected("ISSUER_INVALID", f"{login.issuer} {fault}", "name the address of an OpenID provider")
    url = f"{login.issuer.rstrip('/')}/.well-known/openid-configuration"
    status, body = await _send(session, url, None)
    if status != 200:
        raise Rejected("ISSUER_INVALID", f"{url} answers {status}", "name the address of an OpenID provider")
    found = _read(body, OpenIdEndpoints, url)
    if found.issuer.rstrip("/") != login.issuer.rstrip("/"):
        raise Rejected("ISSUER_INVALID", f"{url} is the document of {shown(found.issuer)}", "name that")
    for each in (found.token_endpoint, found.device_authorization_endpoint, found.revocation_endpoint):
        if each and (fault := address_fault(each)):
            raise Rejected("ISSUER_INVALID", f"the provider names {shown(each)}, which {fault}")
    return found


async def _post(session: aiohttp.ClientSession, url: str, form: Mapping[str, str], answer: type[A]) -> A:
    """Post a form to the provider and return the answer, of the type `answer`.

    Raise _Refused if the provider refuses, Unavailable if it does not answer or fails.
    """
    status, body = await _send(session, url, form)
    if status >= 500:
        raise Unavailable(f"{url} answers {status}")
    if status != 200:
        raise _Refused(_read(body, _Fault, url))
    return _read(body, answer, url)


async def _send(
    session: aiohttp.ClientSession, url: str, form: Mapping[str, str] | None
) -> tuple[int, bytes]:
    method = "GET" if form is None else "POST"
    try:
        async with session.request(method, url, data=form, allow_redirects=False) as answer:
            return answer.status, await web.body(answer, ANSWER_BYTES)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # The text of an error of the library may hold an address, but no form.
        raise Unavailable(f"{url}: {type(error).__name__}: {error}") from None


def _read(body: bytes, kind: type[A], url: str) -> A:
    try:
        return msgspec.json.decode(body, type=kind)
    except UNDECODABLE:
        raise Rejected("ISSUER_INVALID", f"{url} does not answer as an OpenID provider does") from None
