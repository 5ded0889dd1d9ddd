"""Moves objects of S3: `s3://bucket/key` URLs, at the server that the site's configuration names.

An object appears whole or not at all: by one PUT, or for large ones when the last part is confirmed.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import obstore
from obstore import exceptions
from obstore.store import S3Store

from wms.errors import Rejected, Unavailable
from wms.transfer.access_rules import AccessRules
from wms.transfer.file_url import FileUrl, redacted
from wms.transfer.mover import NO_ACCESS, NO_FILE, OutgoingFile
from wms.transfer.part_file import PartFile
from wms.transfer.s3_bucket import opened_bucket
from wms.transfer.s3_settings import S3Settings
from wms.transfer.transfer_limits import Meter

if TYPE_CHECKING:
    from obstore import GetOptions

_CHUNK = 8 * 1024 * 1024
_MOST_PARTS = 10_000
"""How many parts S3 lets an upload have."""
_PARTS_AT_ONCE = 2
"""How many parts are sent at a time. A part counts as moved when it is read from the file, so more at a time count long before they are sent."""


class S3Mover:
    """Fetches and puts files as objects of S3."""

    def __init__(self, rules: AccessRules, settings: S3Settings) -> None:
        self._rules = rules
        self._settings = settings

    async def fetch(self, url: FileUrl, part: PartFile, meter: Meter) -> None:
        """Fetch an object into `part`. If the object's ETag is that of the bytes already in `part`, fetch only the rest."""
        offset = part.offset_for(url)
        options: GetOptions = {"range": {"offset": offset}} if offset else {}
        if offset and part.validator:
            options["if_match"] = part.validator
        async with meter.watching():
            with _told(url, part):
                answer = await obstore.get_async(self._store(url), _key(url), options=options)
                meter.check_size(answer.meta["size"])
                meter.begin(offset)
                with part.open(url, offset, answer.meta["e_tag"] or "") as file:
                    async for data in answer.stream(_CHUNK):
                        meter.moved(len(data))
                        await asyncio.to_thread(part.append, file, memoryview(data))

    async def put(self, sending: OutgoingFile, url: FileUrl, meter: Meter) -> None:
        """Put a file as an object, in one request, or in parts that become visible together."""
        # Completing an upload is the last thing that a put does, and nothing can be asked between: so the lease is looked
        # at before, and who loses it cancels the put.
        sending.commit()
        meter.begin()
        async with meter.watching():
            with sending.source.open("rb") as file, _told(url):
                loop = asyncio.get_running_loop()
                store = self._store(url)
                size = part_size(sending.size)
                pieces = _pieces(file, size, lambda count: loop.call_soon_threadsafe(meter.moved, count))
                await obstore.put_async(
                    store,
                    _key(url),
                    pieces,
                    use_multipart=sending.size > size,
                    chunk_size=size,
                    max_concurrency=_PARTS_AT_ONCE,
                )

    def _store(self, url: FileUrl) -> S3Store:
        # The library does not try again, as callers do and count.
        return opened_bucket(url.host, self._settings, tries=1, seconds=4 * 3_600)


def part_size(file_bytes: int) -> int:
    """Return the size in bytes of all parts but the last of a file with `file_bytes` bytes: 8 MiB, or more if those were over 10,000 parts."""
    return max(_CHUNK, -(-file_bytes // _MOST_PARTS))


def _pieces(file: Any, size: int, moved: Any) -> Iterator[bytes]:
    while data := file.read(size):
        moved(len(data))
        yield data


def _key(url: FileUrl) -> str:
    return url.path.lstrip("/")


@contextlib.contextmanager
def _told(url: FileUrl, part: PartFile | None = None) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError):
        raise Rejected(NO_FILE, f"{url}: no such object or bucket") from None
    except (PermissionError, exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
        raise Rejected(NO_ACCESS, f"{url}: the server denies access") from None
    except exceptions.PreconditionError:
        if part is not None:
            part.discard()
        raise Unavailable(f"{url}: the object is another than before") from None
    except (exceptions.BaseError, OSError) as error:
        raise Unavailable(f"{url}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return redacted(" ".join(str(error).split()))[:300]
