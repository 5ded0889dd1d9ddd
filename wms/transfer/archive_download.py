"""Downloads of archives from a gateway. One that breaks goes on where it was."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, Final

from wms.errors import Rejected
from wms.gateway.direct_download import download
from wms.gateway.refusal import refusal
from wms.transfer.stored_object import CHUNK, MAX_OBJECT
from wms.web import body

if TYPE_CHECKING:  # clients without a gateway need no HTTP client
    import aiohttp

ANSWER_LIMIT: Final = 100_000
"""The most bytes that are read of a refusal."""


async def append_rest(
    session: "aiohttp.ClientSession",
    url: str,
    headers: Mapping[str, str],
    timeout: "aiohttp.ClientTimeout",
    file: BinaryIO,
) -> None:
    """Append to `file` what it does not have yet of an archive, in one try. If the try breaks, what has come stays, for the next one.

    Raise what the gateway's refusal means (`refusal`), and Rejected if the archive is over MAX_OBJECT. Errors of the HTTP client are not
    translated.
    """
    offset = file.seek(0, os.SEEK_END)
    wanted = {**headers, "Range": f"bytes={offset}-"} if offset else headers
    async with download(session, url, wanted, timeout) as answer:
        if offset and answer.status == 416:  # all of it is there
            return
        if answer.status not in (200, 206):
            raise refusal(answer.status, await body(answer, ANSWER_LIMIT))
        file.seek(offset if answer.status == 206 else 0)
        file.truncate()
        async for piece in answer.content.iter_chunked(CHUNK):
            if file.tell() + len(piece) > MAX_OBJECT:
                raise Rejected("SANDBOX_TOO_LARGE", f"the archive is over {MAX_OBJECT:,} bytes")
            await asyncio.to_thread(file.write, piece)
