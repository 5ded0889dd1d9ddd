"""Logging in at an OpenID provider by the device flow (RFC 8628): a code that the user confirms in a browser of any machine.

The access token goes into the token file, and the refresh token into a file beside it. Both are readable by their owner
alone. Providers exchange refresh tokens at each use. So one process at a time renews, and the others take the token that it
got.
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
from wms.errors import Rejected, Unavailable, shown
from wms.files import write_secret
from wms.web import WebIdentity

LOGIN_FILE: Final = "login.json"
SCOPES: Final = "openid offline_access"
ANSWER_BYTES: Final = 65_536
CALL_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 120.0
"""Seconds before a token's end from which on it is renewed."""
LOOK_SECONDS: Final = 30.0
SLOWER_SECONDS: Final = 5.0
"""Seconds by which the pause between two requests grows when the provider says that they come too fast."""
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"

A = TypeVar("A", bound=msgspec.Struct)


class OpenIdEndpoints(msgspec.Struct, frozen=True):
    """The members of a provider's discovery document that logging in needs."""

    issuer: Line
    token_endpoint: Line
    device_authorization_endpoint: Line = ""
    revocation_endpoint: Line = ""


class DeviceCode(msgspec.Struct, frozen=True):
    """A provider's answer to the request to log in: the code, where the user confirms it, and how often to ask for the token."""

    device_code: Text
    user_code: Line
    verification_uri: Line
    verification_uri_complete: Line = ""
    expires_in: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 600.0
    interval: Annotated[float, msgspec.Meta(ge=0, le=600)] = 5.0


class IssuedTokens(msgspec.Struct, frozen=True):
    """Tokens that a provider issued; `repr` does not show them."""

    access_token: Annotated[str, msgspec.Meta(min_length=1, max_length=LIMIT)]
    refresh_token: Annotated[str, msgspec.Meta(max_length=LIMIT)] = ""

    def __repr__(self) -> str:
        return "IssuedTokens()"


class Login(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A login at an OpenID provider, as its file keeps it."""

    issuer: Line
    client_id: Line
    scope: Line = SCOPES
    audience: Line = ""
    """The audience to request for the token, if the provider needs it as `audience`; empty for none."""
    resource: Line = ""
    """The audience to request for the token, if the provider needs it as `resource` (RFC 8707); empty for none."""
    authorities: Line = ""
    refresh_token: Annotated[str, msgspec.Meta(max_length=LIMIT)] = ""

    def __repr__(self) -> str:
        return f"Login({self.issuer!r})"


class _Fault(msgspec.Struct, frozen=True):
    error: Line = ""
    error_description: Text = ""


async def log_in(login: Login, token_file: Path, tell: Callable[[DeviceCode], None]) -> UserCredential:
    """Log in at a provider, write the token and the login to their files, and return the token.

    `tell` shows the user the code and where to confirm it; the call waits until that is done.

    Raise Rejected if the provider refuses (LOGIN_REFUSED), is none (ISSUER_INVALID) or nobody confirms in time
    (LOGIN_EXPIRED). Raise Unavailable if the provider does not answer.
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
    """Renew the token of a login if it ends `within` so many seconds after `now`. Return whether it was renewed.

    Raise Rejected (LOGIN_ENDED) if the provider refuses to renew it, Unavailable if the provider does not answer.
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
    """Renew the token of a login whenever it is about to end, until cancelled. Return if the token is not of a login.

    `now` returns the time in seconds since 1970. Raise Rejected (LOGIN_ENDED) if the provider refuses to renew.
    """
    while read_login(token_file) is not None:
        with contextlib.suppress(Unavailable):
            await renew(token_file, now())
        await asyncio.sleep(LOOK_SECONDS)


async def log_out(token_file: Path) -> Login:
    """Have the provider revoke the refresh token, if it answers, and delete both files. Return the login that was ended.

    Raise Rejected (NOT_LOGGED_IN) if the token is not of a login.
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
    """Return the path of the login's file, which is in the directory of the token file."""
    return token_file.with_name(LOGIN_FILE)


def read_login(token_file: Path) -> Login | None:
    """Return the login that made a token; None if there is none. Raise Rejected (LOGIN_INVALID) if its file cannot be used."""
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
    """Ask for the token until the user has confirmed the code, and return it.

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
    """Return by how many seconds the pause grows after a refusal that says to ask again. Raise any other refusal."""
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
    """Hold the lock of a login, so that one process at a time renews it. The lock is free when the process ends."""
    with token_file.with_name(f".{LOGIN_FILE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- the provider -----------------------------------------------------------------------------------------------------


class _Refused(Rejected):
    """The error of a refusal by the provider, with its reason as text and as its error code."""

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
    """Return the provider's answer to a form. Raise _Refused if it refuses, Unavailable if it does not answer."""
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Rejected("ISSUER_INVALID", f"{url} does not answer as an OpenID provider does") from None
