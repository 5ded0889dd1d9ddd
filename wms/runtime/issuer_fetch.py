"""Fetches the public keys of trusted token issuers: first the OpenID discovery document, then the key set that it names.

HTTP redirections are not followed.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Final

import aiohttp
import msgspec
import structlog

from wms import web
from wms.auth.issuer_keys import IssuerKeys
from wms.auth.trusted_issuer import TrustedIssuer
from wms.bounds import Line
from wms.decoding import UNDECODABLE
from wms.errors import Rejected, Unavailable
from wms.web import WebIdentity

log = structlog.get_logger()

FETCH_SECONDS: Final = 10.0
"""Seconds within which both documents of an issuer must be fetched."""
DISCOVERY_BYTES: Final = 65_536
KEYS_BYTES: Final = 262_144


class DiscoveryDocument(msgspec.Struct, frozen=True):
    """The fields of an OpenID discovery document that are used: the issuer's URL and that of its key set."""

    issuer: Line
    jwks_uri: Annotated[str, msgspec.Meta(max_length=2_000)]


class IssuerFetch:
    """Keeps the public keys of trusted token issuers fresh. `now` returns the time in seconds since 1970."""

    def __init__(self, keys: IssuerKeys, now: Callable[[], float]) -> None:
        self._keys = keys
        self._now = now

    async def look(self) -> None:
        """Fetch the keys of all issuers whose next fetch is due. A failure is recorded for its issuer, whose former keys stay in use."""
        await asyncio.gather(*map(self._fetch, self._keys.due(self._now())))

    async def _fetch(self, issuer: TrustedIssuer) -> None:
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                jwks = await fetch_keys(issuer)
            self._keys.take(issuer, jwks, self._now())
        except (Unavailable, Rejected, TimeoutError) as error:
            why = str(error) or f"no answer within {FETCH_SECONDS:g} s"
            log.warning("keys of an issuer not fetched", issuer=issuer.url, error=why)
            self._keys.failed(issuer, why, self._now())


async def fetch_keys(issuer: TrustedIssuer) -> bytes:
    """Return the issuer's key set (JWKS) as fetched, not yet decoded.

    Raise Unavailable if its server gives no valid answer. Raise Rejected (ISSUER_INVALID) if the discovery document is of another issuer, or names a
    URL for the keys that is not allowed.
    """
    # Authorities are read anew for each fetch, whose time the caller bounds as a whole.
    async with web.json_session(issuer.url, WebIdentity(authorities=issuer.authorities)) as session:
        found = _discovery(await _get(session, issuer.discovery, DISCOVERY_BYTES), issuer)
        return await _get(session, found.jwks_uri, KEYS_BYTES)


async def _get(session: aiohttp.ClientSession, url: str, limit: int) -> bytes:
    try:
        async with session.get(url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise Unavailable(f"{url} answers {answer.status}")
            return await web.body(answer, limit)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unavailable(f"{url}: {type(error).__name__}: {error}") from None


def _discovery(data: bytes, issuer: TrustedIssuer) -> DiscoveryDocument:
    try:
        found = msgspec.json.decode(data, type=DiscoveryDocument)
    except UNDECODABLE as error:
        raise Rejected("ISSUER_INVALID", f"{issuer.discovery} is no discovery document: {error}") from None
    if found.issuer != issuer.url:
        raise Rejected(
            "ISSUER_INVALID",
            f"{issuer.discovery} is the document of {found.issuer}",
            "write its name exactly",
        )
    if fault := issuer.keys_fault(found.jwks_uri):
        raise Rejected("ISSUER_INVALID", f"{issuer.url} has its keys at {found.jwks_uri}, which {fault}")
    return found
