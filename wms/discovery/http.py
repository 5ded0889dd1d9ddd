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
import msgspec

from wms.discovery.address import Address
from wms.discovery.document import SIZE_LIMIT, read_element, read_index
from wms.discovery.told import Told
from wms.errors import Unavailable

INFORMATION = "rest/1.0/info"
"""Where an ARC element tells of itself, below its address."""
_PIECE = 1 << 16


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are, and whom we believe; files are read anew each time, for others renew them."""

    proxy_file: str = ""
    """An X.509 proxy, or a certificate with its key."""
    token_file: str = ""
    token_hosts: Sequence[str] = ()
    """Patterns of the hosts that may see the token."""
    authorities: str = ""
    """A file or directory of certificates; empty: this machine's."""


class Web:
    """Asks servers by http and https."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential
        self._contexts: dict[tuple[float, ...], ssl.SSLContext] = {}

    async def ask(self, address: Address) -> Told:
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
        said = self._credential
        place = Path(said.authorities) if said.authorities else None
        try:
            files = [Path(each) for each in (said.authorities, said.proxy_file) if each]
            stamp = tuple(each.stat().st_mtime for each in files)
            if stamp not in self._contexts:
                context = ssl.create_default_context(
                    cafile=str(place) if place and not place.is_dir() else None,
                    capath=str(place) if place and place.is_dir() else None,
                )
                if said.proxy_file:
                    context.load_cert_chain(said.proxy_file)
                self._contexts = {stamp: context}
            return self._contexts[stamp]
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"{said.proxy_file or said.authorities}: {error}") from None

    def _headers(self, address: Address, *, secure: bool) -> dict[str, str]:
        # ARC answers in HTML by itself. Its JSON is its XML made JSON, and not all versions have it.
        headers = {"Accept": "application/xml, */*;q=0.1", "Accept-Encoding": "identity"}
        said = self._credential
        if said.token_file and secure and any(fnmatchcase(address.host, each) for each in said.token_hosts):
            try:
                headers["Authorization"] = f"Bearer {Path(said.token_file).read_text('utf-8').strip()}"
            except OSError as error:
                raise Unavailable(f"{said.token_file}: {error.strerror}") from None
        return headers


async def _body(answer: aiohttp.ClientResponse, url: str) -> bytes:
    if answer.status != 200:
        raise Unavailable(f"{url}: {answer.status} {answer.reason}")
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Unavailable(f"{url}: sent compressed, which was not asked for")
    if (answer.content_length or 0) > SIZE_LIMIT:
        raise Unavailable(f"{url}: {answer.content_length:,} bytes, at most {SIZE_LIMIT:,} are read")
    body = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        body += piece
        if len(body) > SIZE_LIMIT:
            raise Unavailable(f"{url}: over {SIZE_LIMIT:,} bytes")
    return bytes(body)
