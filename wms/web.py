"""Calls to other people's servers over the web: whom we believe, who we are, and how much of an answer is read.

Redirections are for callers to refuse: they would carry our token to who knows where.
"""

import ssl
from pathlib import Path

import aiohttp
import msgspec

from wms.errors import Unavailable

_PIECE = 1 << 16


class WebIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are and whom we believe. The files are read anew for each connection, since others renew them."""

    proxy_file: str = ""
    """An X.509 proxy, or a certificate with its key."""
    token_file: str = ""
    """A bearer token."""
    authorities: str = ""
    """A file or a directory with the certificates of the authorities that are believed; empty: this machine's."""

    def context(self) -> ssl.SSLContext:
        """Return whom to believe and what to show. Raises Unavailable while a file is missing, or is being renewed."""
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
        """Return the header that carries the token; empty without one. Raises Unavailable if it cannot be read."""
        if not self.token_file:
            return {}
        try:
            return {"Authorization": f"Bearer {Path(self.token_file).read_text('ascii').strip()}"}
        except (OSError, ValueError) as error:
            raise Unavailable(f"our credential cannot be read: {self.token_file}: {error}") from None


async def body(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return what an answer holds. Raises Unavailable if it is over `limit` bytes."""
    if (answer.content_length or 0) > limit:
        raise Unavailable(f"{answer.url}: {answer.content_length:,} bytes, at most {limit:,} are read")
    read = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        read += piece
        if len(read) > limit:
            raise Unavailable(f"{answer.url}: over {limit:,} bytes")
    return bytes(read)
