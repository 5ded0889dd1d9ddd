"""Asks indexes and ARC elements on the web.

The servers are not trusted: bodies are bounded before they are parsed, compressed bodies are refused, and redirections are not followed.
The access token is sent over https alone, and only to hosts that the configuration names.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import aiohttp

from wms.discovery.address import Address
from wms.discovery.document import SIZE_LIMIT, read_element, read_index
from wms.discovery.server_answers import ServerAnswer
from wms.errors import Unavailable
from wms.web import WebIdentity, body

INFORMATION = "rest/1.0/info"
"""The path of an ARC element's description of itself, below the element's URL."""


class Web:
    """A source of elements that asks indexes and ARC elements by http and https."""

    def __init__(
        self,
        credential: WebIdentity,
        token_hosts: Sequence[str] = (),
        *,
        size_limit: int = SIZE_LIMIT,
        readers: Executor | None = None,
        read_at_once: int = 8,
    ) -> None:
        """Make a client with these credentials. The token of `credential` is sent only to hosts that match the patterns `token_hosts`.

        `size_limit` bounds a document in bytes. At most `read_at_once` documents are parsed at a time, in `readers` or the default executor.
        """
        self._credential = credential
        self._token_hosts = token_hosts
        self._size_limit = size_limit
        self._readers = readers
        self._turns = asyncio.Semaphore(read_at_once)
        self._contexts: dict[tuple[float, ...], ssl.SSLContext] = {}

    async def ask(self, address: Address) -> ServerAnswer:
        """Fetch and parse the document of an index or an ARC element.

        Raise Unavailable if the server cannot be reached or does not return the document, Rejected if the document cannot be parsed.
        """
        if address.kind == "index":
            data = await self._fetch(address, address.url)
            return await self._read(partial(read_index, data, address.url))
        data = await self._fetch(address, f"{address.url.rstrip('/')}/{INFORMATION}")
        return await self._read(partial(read_element, data, address))

    async def _read(self, read: Callable[[], ServerAnswer]) -> ServerAnswer:
        async with self._turns:
            return await asyncio.get_running_loop().run_in_executor(self._readers, read)

    async def _fetch(self, address: Address, url: str) -> bytes:
        secure = address.scheme == "https"
        context = await asyncio.to_thread(self._context) if secure else True
        try:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=context),
                    # The caller bounds the time.
                    timeout=aiohttp.ClientTimeout(total=None),
                    trust_env=False,
                    auto_decompress=False,
                ) as session,
                session.get(
                    url, headers=self._headers(address, secure=secure), allow_redirects=False
                ) as answer,
            ):
                return await _body(answer, url, self._size_limit)
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{url}: {error!r}") from None

    def _context(self) -> ssl.SSLContext:
        """Return a TLS context with the trusted authorities and the client certificate, made anew when one of their files has changed.

        Raise Unavailable if one of the files is missing.
        """
        files = [Path(each) for each in (self._credential.authorities, self._credential.proxy_file) if each]
        try:
            stamp = tuple(each.stat().st_mtime for each in files)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from None
        if stamp not in self._contexts:
            self._contexts = {stamp: self._credential.context()}
        return self._contexts[stamp]

    def _headers(self, address: Address, *, secure: bool) -> dict[str, str]:
        # Without this header ARC answers in HTML. Its JSON is converted from its XML, and not all versions have it.
        headers = {"Accept": "application/xml, */*;q=0.1", "Accept-Encoding": "identity"}
        if secure and any(fnmatchcase(address.host, each) for each in self._token_hosts):
            headers |= self._credential.bearer()
        return headers


async def _body(answer: aiohttp.ClientResponse, url: str, size_limit: int) -> bytes:
    if answer.status != 200:
        raise Unavailable(f"{url}: {answer.status} {answer.reason}")
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Unavailable(f"{url}: sent compressed, which was not asked for")
    return await body(answer, size_limit)
