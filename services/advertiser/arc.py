"""The queues of an ARC computing element, from the GLUE 2.0 that its REST interface tells (`GET rest/1.0/info`).

Who asks shows an X.509 proxy or a bearer token; both are files that others renew, so they are read each time. Redirections
are not followed: they would carry the token to who knows where.
"""

import asyncio
import ssl
from pathlib import Path

import aiohttp

from services.advertiser.config import ArcSettings
from services.advertiser.provider import Seen
from services.advertiser.queues import wanted
from wms.errors import Rejected, Unavailable
from wms.glue import versions
from wms.glue.arc_json import read_arc_json
from wms.glue.entity import SIZE_LIMIT
from wms.glue.glue1 import ComputingElement
from wms.glue.glue2_xml import read_xml

SECONDS = 60.0
_PIECE = 1 << 16


class Arc:
    """One ARC element."""

    def __init__(self, settings: ArcSettings) -> None:
        self._settings = settings
        if not settings.url.startswith("https://"):
            raise Rejected("CONFIG_INVALID", f"arc: {settings.url} is not an https URL")
        if not settings.proxy_file and not settings.token_file:
            raise Rejected("CONFIG_INVALID", "arc: neither proxy_file nor token_file is said")

    async def read(self) -> list[Seen]:
        """Ask the element."""
        document, form = await self._ask()
        return wanted(self._settings, await asyncio.to_thread(_queues, document, form), dispatcher="arc")

    async def _ask(self) -> tuple[bytes, str]:
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        url = f"{self._settings.url.rstrip('/')}/rest/1.0/info"
        try:
            connector = aiohttp.TCPConnector(ssl=self._context())
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
                session.get(url, headers=self._headers(), allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise Unavailable(f"{url}: {answer.status} {answer.reason}")
                return await _body(answer, url), answer.content_type
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{url}: {error!r}") from None

    def _context(self) -> ssl.SSLContext:
        """Return whom to believe and what to show; raises Unavailable while a file is missing, or is being renewed."""
        authorities, proxy = self._settings.authorities, self._settings.proxy_file
        place = Path(authorities) if authorities else None
        try:
            context = ssl.create_default_context(
                cafile=str(place) if place and not place.is_dir() else None,
                capath=str(place) if place and place.is_dir() else None,
            )
            if proxy:
                context.load_cert_chain(proxy)
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"{proxy or authorities}: {error}") from None
        return context

    def _headers(self) -> dict[str, str]:
        # By itself it answers in HTML. Its JSON is its XML made JSON, and not all versions have it.
        headers = {"Accept": "application/xml"}
        if self._settings.token_file:
            try:
                token = Path(self._settings.token_file).read_text("utf-8").strip()
            except OSError as error:
                raise Unavailable(f"{self._settings.token_file}: {error.strerror}") from None
            headers["Authorization"] = f"Bearer {token}"
        return headers


async def _body(answer: aiohttp.ClientResponse, url: str) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        body += piece
        if len(body) > SIZE_LIMIT:
            raise Unavailable(f"{url}: over {SIZE_LIMIT:,} bytes")
    return bytes(body)


def _queues(document: bytes, form: str) -> list[ComputingElement]:
    read = read_arc_json if form == "application/json" else read_xml
    return [queue for service in read(document) for queue in versions.elements(service)]
