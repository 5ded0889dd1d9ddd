"""HTTP calls to other parties' servers: trusted authorities, our credentials, and limits on the size of answers.

Callers must refuse redirections, which would carry our token to an unknown server.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wms.bounds import Line
from wms.errors import Unavailable

if TYPE_CHECKING:  # configurations name an identity, and must not load what takes long
    import aiohttp

_PIECE = 1 << 16


class WebIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Our credentials, and the certificate authorities we trust. The files are read for each connection, since other programs renew them."""

    proxy_file: Line = ""
    """The path of a file with an X.509 proxy, or with a certificate and its key; empty for none."""
    token_file: Line = ""
    """The path of a file with a bearer token; empty for none."""
    authorities: Line = ""
    """A file or directory with the certificates of trusted authorities; empty for those of this machine."""

    def context(self) -> ssl.SSLContext:
        """Return a TLS context with the trusted authorities and our credential. Raise Unavailable while a file cannot be read."""
        place = Path(self.authorities) if self.authorities else None
        try:
            context = ssl.create_default_context(
                cafile=str(place) if place and not place.is_dir() else None,
                capath=str(place) if place and place.is_dir() else None,
            )
            if self.proxy_file:
                context.load_cert_chain(self.proxy_file)
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(
                f"our credential cannot be read: {self.proxy_file or self.authorities}: {error}"
            ) from None
        return context

    def bearer(self) -> dict[str, str]:
        """Return the HTTP header with the token; empty without a token file. Raise Unavailable if the file cannot be read."""
        if not self.token_file:
            return {}
        try:
            return {"Authorization": f"Bearer {Path(self.token_file).read_text('ascii').strip()}"}
        except (OSError, ValueError) as error:
            raise Unavailable(f"our credential cannot be read: {self.token_file}: {error}") from None


@asynccontextmanager
async def json_session(
    url: str, identity: WebIdentity, seconds: float | None = None
) -> "AsyncIterator[aiohttp.ClientSession]":
    """Open an HTTP session for requests of JSON documents at the server of `url`, for an `async with` block. It keeps no cookies.

    `seconds` is the time limit of each request; with None the caller must set one. Compressed answers are not expanded, because a small one could
    become very large. Raise Unavailable if a file of the credentials cannot be read.
    """
    import aiohttp

    context = await asyncio.to_thread(identity.context) if url.startswith("https:") else True
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=seconds),
    ) as session:
        yield session


async def body(answer: "aiohttp.ClientResponse", limit: int) -> bytes:
    """Return the body of an answer. Raise Unavailable if it is over `limit` bytes."""
    if (answer.content_length or 0) > limit:
        raise Unavailable(f"{answer.url}: {answer.content_length:,} bytes, at most {limit:,} are read")
    read = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        read += piece
        if len(read) > limit:
            raise Unavailable(f"{answer.url}: over {limit:,} bytes")
    return bytes(read)
