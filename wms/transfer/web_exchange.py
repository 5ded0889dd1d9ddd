"""Requests to web servers that are not trusted: the site's rules are applied to every address and every redirection."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from wms.errors import Rejected, Unavailable, shown
from wms.transfer.access_rules import REFUSED, AccessRules
from wms.transfer.file_url import FileUrl, redacted
from wms.transfer.mover import FULL, NO_ACCESS, NO_FILE
from wms.web import WebIdentity

CONNECT_SECONDS = 20.0
REQUEST_SECONDS = 120.0
"""The time limit, in seconds, of a request that moves no file, such as MOVE."""
_PLAIN = {"dav": "http", "davs": "https"}
_SOON = frozenset({408, 425, 429})
_MOVED = frozenset({301, 302, 303, 307, 308})


class Answered(NamedTuple):
    """The status and the headers of a web server's answer."""

    status: int
    headers: Mapping[str, str]


class WebExchange:
    """Sends the requests of one transfer, over connections of its own."""

    def __init__(self, rules: AccessRules, session: aiohttp.ClientSession) -> None:
        self._rules = rules
        self._session = session

    @contextlib.asynccontextmanager
    async def followed(
        self,
        method: str,
        url: FileUrl,
        headers: Mapping[str, str] | None = None,
        body: Callable[[], AsyncIterator[bytes]] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, follow redirections that the rules allow, and yield the last answer for an `async with` block.

        `body` returns a new request body; it is called for each redirection. Raise Unavailable if the network or the server fails, Rejected if the
        rules exclude a URL or there are too many redirections.
        """
        place = url
        try:
            for _ in range(self._rules.redirects + 1):
                self._rules.check(place)
                _check_host(place)
                async with self._session.request(
                    method,
                    plain(place),
                    headers=headers,
                    data=body() if body else None,
                    allow_redirects=False,
                ) as answer:
                    if answer.status not in _MOVED or "Location" not in answer.headers:
                        yield answer
                        return
                    place = _next(place, answer.headers["Location"])
            raise Rejected(NO_ACCESS, f"{url} leads on after {self._rules.redirects} redirections")
        except aiohttp.InvalidURL:
            raise Rejected(NO_ACCESS, f"{url} is no URL of the web") from None
        except (aiohttp.ClientError, OSError) as error:
            words = shown(redacted(str(error)), 300) or type(error).__name__
            raise Unavailable(f"{url}: {words}") from None

    async def ask(
        self,
        method: str,
        url: FileUrl,
        headers: Mapping[str, str] | None = None,
        body: Callable[[], AsyncIterator[bytes]] | None = None,
    ) -> Answered:
        """Send a request, follow redirections that the rules allow, and return the last answer's status and headers.

        Raise Unavailable if the network or the server fails, or if a request without a body takes over REQUEST_SECONDS. Raise Rejected if the rules
        exclude a URL or there are too many redirections.
        """
        try:
            async with (
                asyncio.timeout(None if body else REQUEST_SECONDS),
                self.followed(method, url, headers, body) as answer,
            ):
                return Answered(answer.status, answer.headers)
        except TimeoutError:
            raise Unavailable(f"{url}: no answer to {method} within {REQUEST_SECONDS:g} s") from None


@contextlib.asynccontextmanager
async def exchange(
    url: FileUrl, rules: AccessRules, identity: WebIdentity, token_hosts: Sequence[str]
) -> AsyncIterator[WebExchange]:
    """Open connections for the transfer of one URL, for an `async with` block.

    The token of `identity` is sent only by https, to hosts that match `token_hosts`.
    """

    async def with_token(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        host = (request.url.host or "").casefold()
        if request.url.scheme == "https" and any(fnmatchcase(host, each) for each in token_hosts):
            request.headers.update(identity.bearer())
        return await send(request)

    secure = plain(url).startswith("https:")
    context = await asyncio.to_thread(identity.context) if secure else True
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, resolver=_JudgedResolver(rules)),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity"},
        middlewares=(with_token,),
        trust_env=False,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield WebExchange(rules, session)


class _JudgedResolver(AbstractResolver):
    """Resolves host names, and raises Rejected for an address that the rules exclude. It runs just before each connection."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            self._rules.check_address(host, ipaddress.ip_address(each["host"].partition("%")[0]))
        return found

    async def close(self) -> None:
        await self._resolver.close()


def plain(url: FileUrl) -> str:
    """Return the text of a URL with the scheme `http` in place of `dav`, and `https` of `davs`. It may contain a signature."""
    return url.with_scheme(_PLAIN.get(url.scheme, url.scheme))


def check_status(status: int, url: FileUrl) -> None:
    """Return normally for a success. Raise Rejected for a permanent failure, Unavailable for a temporary one."""
    if status in (200, 201, 204, 206):
        return
    words = f"{url}: {status} {_phrase(status)}".rstrip()
    if status == HTTPStatus.INSUFFICIENT_STORAGE:
        raise Rejected(FULL, f"{words}: the storage is full")
    if status in (404, 410):
        raise Rejected(NO_FILE, words)
    if status < 500 and status not in _SOON:
        raise Rejected(NO_ACCESS, words)
    raise Unavailable(words)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _check_host(place: FileUrl) -> None:
    """Raise Rejected unless the web library reads the same host from the URL as the rules did.

    The library also converts non-ASCII dots and digits.
    """
    try:
        read = URL(plain(place)).raw_host or ""
    except ValueError:
        raise Rejected(NO_ACCESS, f"{place} is no URL of the web") from None
    if read != place.host and _address(read) != _address(place.host):
        raise Rejected(REFUSED, f"{place} may be read as of another host, {read}", "write the host in ASCII")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | str:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return host


def _next(place: FileUrl, location: str) -> FileUrl:
    found = FileUrl.parse(urljoin(plain(place), location))
    if found.scheme not in ("http", "https"):
        raise Rejected(NO_ACCESS, f"{place} leads to {found}, which is not on the web")
    return found
