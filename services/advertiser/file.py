"""Reads computing elements from a file that an information system or the site's administrators wrote."""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import structlog
from msgspec.structs import replace

from services.advertiser.config import FileSettings
from services.advertiser.provider import SeenElement
from services.advertiser.queues import wanted
from wms.errors import Rejected, Unavailable
from wms.glue import ldif, versions
from wms.glue.arc_json import read_arc_json
from wms.glue.classad import read_classad
from wms.glue.entity import SIZE_LIMIT
from wms.glue.glue1 import GlueComputingElement
from wms.glue.glue2_xml import read_xml

log = structlog.get_logger()

FAULTS_TOLD = 20


class FileProvider:
    """The source of the computing elements in one file. Raise Rejected if the file's name has no known ending.

    The file may change: each `read` reads it again.
    """

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings
        self._path = Path(settings.path)
        if self._path.suffix not in READERS:
            raise Rejected("CONFIG_INVALID", f"files: {settings.path} is none of {', '.join(READERS)}")

    async def read(self) -> list[SeenElement]:
        """Return the computing elements in the file that are to be advertised. Raise Unavailable if the file cannot be read."""
        queues, written_at = await asyncio.to_thread(self._queues)
        seen = wanted(self._settings, queues, dispatcher=self._settings.dispatcher)
        # The file's jobs were counted before it was written, however late it is read.
        return [replace(each, observed_at=written_at) for each in seen]

    def _queues(self) -> tuple[list[GlueComputingElement], datetime]:
        try:
            with self._path.open("rb") as file:
                written_at = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
                data = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            raise Unavailable(f"{self._path}: {error.strerror}") from None
        return READERS[self._path.suffix](data), written_at


def _of_ldif(data: bytes) -> list[GlueComputingElement]:
    """Return the elements in an LDIF document: those of GLUE 1.x if there are any, else those of GLUE 2."""
    entries, faults = ldif.read_ldif(data)
    if faults:
        log.warning("entries of LDIF not read", count=len(faults), faults=faults[:FAULTS_TOLD])
    return ldif.glue1_elements(entries) or [
        each for service in ldif.glue2_services(entries) for each in versions.elements(service)
    ]


def _of_xml(data: bytes) -> list[GlueComputingElement]:
    return [each for service in read_xml(data) for each in versions.elements(service)]


def _of_json(data: bytes) -> list[GlueComputingElement]:
    return [each for service in read_arc_json(data) for each in versions.elements(service)]


def _of_ad(data: bytes) -> list[GlueComputingElement]:
    return [read_classad(data.decode("utf-8", "replace")).element]


READERS: dict[str, Callable[[bytes], list[GlueComputingElement]]] = {
    ".ad": _of_ad,
    ".ldif": _of_ldif,
    ".xml": _of_xml,
    ".json": _of_json,
}
