"""Reads the queues of an ARC computing element from the GLUE 2.0 document of its REST interface."""

import asyncio

from services.advertiser.config import ArcQueues
from services.advertiser.provider import SeenElement
from services.advertiser.queues import wanted
from wms.dispatch.arc_rest import ArcEndpoint, ArcRest
from wms.errors import Rejected
from wms.glue import versions
from wms.glue.arc_json import read_arc_json
from wms.glue.entity import SIZE_LIMIT
from wms.glue.glue1 import GlueComputingElement
from wms.glue.glue2_xml import read_xml


class Arc:
    """The source of the queues of one ARC computing element. Raise Rejected for a URL without https, or without credentials."""

    def __init__(self, settings: ArcQueues) -> None:
        self._settings = settings
        if not settings.url.startswith("https://"):
            raise Rejected("CONFIG_INVALID", f"arc: {settings.url} is not an https URL")
        if not settings.proxy_file and not settings.token_file:
            raise Rejected("CONFIG_INVALID", "arc: neither proxy_file nor token_file is said")
        self._element = ArcEndpoint(
            url=settings.url,
            proxy=settings.proxy_file,
            token=settings.token_file,
            authorities=settings.authorities,
        )

    async def read(self) -> list[SeenElement]:
        """Request the GLUE document of the ARC computing element, and return the queues to advertise. Raise Unavailable or Rejected if that fails."""
        async with ArcRest(self._element) as element:
            document, form = await element.information(SIZE_LIMIT)
        return wanted(self._settings, await asyncio.to_thread(_queues, document, form), dispatcher="arc")


def _queues(document: bytes, form: str) -> list[GlueComputingElement]:
    read = read_arc_json if form == "application/json" else read_xml
    return [queue for service in read(document) for queue in versions.elements(service)]
