"""Indexes and ARC elements on the web.

They are strangers' servers: what they send is bounded before it is parsed, compressed bodies are not taken, and redirections are not
followed. Our token goes only over https and only to hosts that the configuration names.
"""

import asyncio
import ssl
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import aiohttp

from wms.discovery.address import Address
from wms.discovery.document import SIZE_LIMIT, read_element, read_index
from wms.discovery.server_answers import ServerAnswer
from wms.errors import Unavailable
from wms.web import WebIdentity, body

INFORMATION = "rest/1.0/info"
"""Where an ARC element tells of itself, below its address."""


class Web:
    """Asks servers by http and https."""

    def __init__(self, credential: WebIdentity, token_hosts: Sequence[str] = ()) -> None:
        """`token_hosts`: patterns of the hosts that may see our token."""
        self._credential = credential
        self._token_hosts = token_hosts
        self._contexts: dict[tuple[float, ...], ssl.SSLContext] = {}

    async def ask(self, address: Address) -> ServerAnswer:
        """Fetch the document and read it."""
        if address.kind == "index":
            data = await self._fetch(address, address.url)
            return await asyncio.to_thread(read_index, data, address.url)
        data = await self._fetch(address, f"{address.url.rstrip('/')}/{INFORMATION}")
        return await asyncio.to_thread(read_element, data, address)

    async def _fetch(self, address: Address, url: str) -> bytes:
        secure = address.scheme == "https"
        context = await asyncio.to_thread(self._context) if secure else True
        try:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=context),
                    # The time is the caller's affair.
                    timeout=aiohttp.ClientTimeout(total=None),
                    trust_env=False,
                    auto_decompress=False,
                ) as session,
                session.get(
                    url, headers=self._headers(address, secure=secure), allow_redirects=False
                ) as answer,
            ):
                return await _body(answer, url)
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"{url}: {error!r}") from None

    def _context(self) -> ssl.SSLContext:
        """Return whom to believe and what to show; made anew when a file of it has changed."""
        files = [Path(each) for each in (self._credential.authorities, self._credential.proxy_file) if each]
        try:
            stamp = tuple(each.stat().st_mtime for each in files)
        except OSError as error:
            raise Unavailable(f"{error.filename}: {error.strerror}") from None
        if stamp not in self._contexts:
            self._contexts = {stamp: self._credential.context()}
        return self._contexts[stamp]

    def _headers(self, address: Address, *, secure: bool) -> dict[str, str]:
        # ARC answers in HTML by itself. Its JSON is its XML made JSON, and not all versions have it.
        headers = {"Accept": "application/xml, */*;q=0.1", "Accept-Encoding": "identity"}
        if secure and any(fnmatchcase(address.host, each) for each in self._token_hosts):
            headers |= self._credential.bearer()
        return headers


async def _body(answer: aiohttp.ClientResponse, url: str) -> bytes:
    if answer.status != 200:
        raise Unavailable(f"{url}: {answer.status} {answer.reason}")
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Unavailable(f"{url}: sent compressed, which was not asked for")
    return await body(answer, SIZE_LIMIT)
