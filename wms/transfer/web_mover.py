"""Moves files by HTTP and WebDAV: `http`, `https`, `dav` and `davs` URLs.

A file is put under a temporary name and renamed (MOVE of RFC 4918). At a signed URL, whose name cannot be changed, it is put in one
request.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus

import aiohttp

from wms.errors import Rejected, Unavailable
from wms.transfer.access_rules import AccessRules
from wms.transfer.file_url import FileUrl
from wms.transfer.mover import NO_ACCESS, OutgoingFile
from wms.transfer.part_file import PartFile
from wms.transfer.transfer_limits import Meter
from wms.transfer.web_exchange import WebExchange, check_status, exchange, plain
from wms.web import WebIdentity

_CHUNK = 1 << 18
_NO_MOVE = frozenset({400, 405, 501})
_PARENTS = 20


class WebMover:
    """Fetches and puts files by HTTP and WebDAV."""

    def __init__(
        self, rules: AccessRules, identity: WebIdentity | None = None, token_hosts: Sequence[str] = ()
    ) -> None:
        """Take the site's rules and credentials. The token of `identity` is sent only to hosts that match `token_hosts`."""
        self._rules = rules
        self._identity = identity or WebIdentity()
        self._token_hosts = token_hosts

    async def fetch(self, url: FileUrl, part: PartFile, meter: Meter) -> None:
        """Fetch the file at the URL into `part`. If the server says that the bytes in `part` still fit, the transfer continues after them.

        Raise Rejected if the server refuses, Unavailable if another try may succeed.
        """
        offset = part.offset_for(url)
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        if offset and part.validator:
            headers["If-Range"] = part.validator
        async with (
            meter.watching(),
            self._exchange(url) as web,
            web.followed("GET", url, headers) as answer,
        ):
            if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.discard()
                raise Unavailable(f"{url}: the file has another size than before")
            check_status(answer.status, url)
            await _receive(answer, url, part, meter, _offset(answer, offset))

    async def put(self, sending: OutgoingFile, url: FileUrl, meter: Meter) -> None:
        """Put a file under a temporary name and rename it. If the server cannot rename, put it in one request.

        Raise Rejected if the server refuses, Unavailable if another try may succeed.
        """
        async with self._exchange(url) as web:
            if url.is_signed or not await self._put_and_move(web, sending, url, meter):
                sending.commit()
                await _send(web, sending, url, meter)

    async def _put_and_move(
        self, web: WebExchange, sending: OutgoingFile, url: FileUrl, meter: Meter
    ) -> bool:
        """Put the file under a temporary name and rename it. Return False if the server cannot rename."""
        temporary = url.beside(sending.mark)
        is_moved = False
        try:
            await _send(web, sending, temporary, meter)
            await _check_size(web, temporary, sending.size)
            sending.commit()
            is_moved = await _move(web, temporary, url)
        finally:
            if not is_moved:
                with contextlib.suppress(Rejected, Unavailable):
                    await web.ask("DELETE", temporary)
        return is_moved

    def _exchange(self, url: FileUrl) -> contextlib.AbstractAsyncContextManager[WebExchange]:
        return exchange(url, self._rules, self._identity, self._token_hosts)


async def _send(web: WebExchange, sending: OutgoingFile, url: FileUrl, meter: Meter) -> None:
    """Put the file in one request. If the server reports missing parent collections, make them and put it again."""
    status = await _put(web, sending, url, meter)
    if status in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND) and not url.is_signed:
        await _make_parents(web, url)
        status = await _put(web, sending, url, meter)
    check_status(status, url)


async def _put(web: WebExchange, sending: OutgoingFile, url: FileUrl, meter: Meter) -> int:
    headers = {"Content-Length": str(sending.size), "Content-Type": "application/octet-stream"}
    async with meter.watching():
        answer = await web.ask("PUT", url, headers, lambda: _pieces(sending, meter))
    return answer.status


async def _pieces(sending: OutgoingFile, meter: Meter) -> AsyncIterator[bytes]:
    meter.begin()
    with sending.source.open("rb") as file:
        while data := await asyncio.to_thread(file.read, _CHUNK):
            meter.moved(len(data))
            yield data


async def _move(web: WebExchange, temporary: FileUrl, url: FileUrl) -> bool:
    """Rename the file on the server; return False if the server cannot."""
    answer = await web.ask("MOVE", temporary, {"Destination": plain(url), "Overwrite": "T"})
    if answer.status in _NO_MOVE:
        return False
    check_status(answer.status, url)
    return True


async def _check_size(web: WebExchange, url: FileUrl, size: int) -> None:
    """Raise Unavailable if the server says that the file has another size than `size`."""
    answer = await web.ask("HEAD", url)
    told = answer.headers.get("Content-Length", "")
    if answer.status == HTTPStatus.OK and told.isdecimal() and int(told) != size:
        raise Unavailable(f"{url}: the server keeps {int(told):,} of {size:,} bytes")


async def _make_parents(web: WebExchange, url: FileUrl) -> None:
    """Make the collections (directories) above a file on the server, from the outermost on."""
    names = [each for each in url.path.split("/")[:-1] if each][:_PARENTS]
    for count in range(1, len(names) + 1):
        await web.ask("MKCOL", FileUrl.parse(f"{url.endpoint}/{'/'.join(names[:count])}/"))


async def _receive(
    answer: aiohttp.ClientResponse, url: FileUrl, part: PartFile, meter: Meter, offset: int
) -> None:
    if answer.headers.get("Content-Encoding", "identity").casefold() != "identity":
        raise Rejected(NO_ACCESS, f"{url} is sent compressed, which was not asked for")
    meter.begin(offset)
    meter.check_size(offset + (answer.content_length or 0))
    with part.open(url, offset, _validator(answer)) as file:
        async for data in answer.content.iter_chunked(_CHUNK):
            meter.moved(len(data))
            await asyncio.to_thread(part.append, file, data)


def _offset(answer: aiohttp.ClientResponse, asked: int) -> int:
    """Return the offset of the first byte in an answer. `asked` is the offset that was requested."""
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        return 0
    if not answer.headers.get("Content-Range", "").startswith(f"bytes {asked}-"):
        raise Unavailable("the server sends another range than was asked for")
    return asked


def _validator(answer: aiohttp.ClientResponse) -> str:
    """Return the strong ETag of an answer; empty if it has none."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') and tag.isprintable() and len(tag) < 200 else ""
