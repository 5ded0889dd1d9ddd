"""The sandbox store behind a gateway: it takes archives of input files, and returns the output archive of a job."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from wms.errors import Rejected, Unavailable
from wms.gateway.direct_download import download
from wms.gateway.refusal import refusal
from wms.jobdesc.description import SandboxRef
from wms.transfer.stored_object import CHUNK, MAX_OBJECT, TornSandbox
from wms.web import body

ANSWER_LIMIT: Final = 100_000
TIMEOUT: Final = aiohttp.ClientTimeout(total=3_600, sock_connect=15, sock_read=60)
ARCHIVE: Final = "application/gzip"


class GatewaySandboxes:
    """The sandbox store behind a gateway, as one user reaches it. Only the output of the job `job_id` can be fetched."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, headers: dict[str, str], job_id: int | None
    ) -> None:
        self._session = session
        self._url = url
        self._headers = headers | {"Content-Type": ARCHIVE}
        self._job_id = job_id
        self._loop = asyncio.get_running_loop()

    @property
    def max_object(self) -> int:
        """How many bytes an archive may have."""
        return MAX_OBJECT

    def keep(self, source: Path | bytes) -> SandboxRef:
        """Send an archive and return its reference. The call blocks, so it must run in another thread than the client's event loop.

        Raise Rejected if the archive is refused, Unavailable if it did not arrive and may be sent again.
        """
        return asyncio.run_coroutine_threadsafe(self._put(source), self._loop).result()

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Copy the output archive of the job to the new file `to_path`, check that its digest is `sha256`, and return its reference.

        Raise Rejected if the gateway refuses, or if the archive is too large. Raise Unavailable if the archive did not arrive, and
        TornSandbox if it has another digest.
        """
        url = f"{self._url}/jobs/{self._job_id}/output"
        try:
            async with download(self._session, url, self._headers, TIMEOUT) as answer:
                if answer.status != 200:
                    raise refusal(answer.status, await body(answer, ANSWER_LIMIT))
                found = await _written(answer.content.iter_chunked(CHUNK), to_path)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unavailable(f"the output of job {self._job_id} did not come: {error!r}") from None
        if found.sha256 != sha256:
            await asyncio.to_thread(to_path.unlink, missing_ok=True)
            raise TornSandbox(f"the output of job {self._job_id} is not what its attempt stored")
        return found

    async def _put(self, source: Path | bytes) -> SandboxRef:
        try:
            async with self._session.post(
                f"{self._url}/sandboxes",
                data=source if isinstance(source, bytes) else _pieces(source),
                headers=self._headers,
                timeout=TIMEOUT,
                allow_redirects=False,
            ) as answer:
                read = await body(answer, ANSWER_LIMIT)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unavailable(f"the files could not be sent: {error!r}") from None
        if answer.status != 201:
            raise refusal(answer.status, read)
        return msgspec.json.decode(read, type=SandboxRef)


async def _pieces(source: Path) -> AsyncIterator[bytes]:
    with source.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, CHUNK):
            yield piece


async def _written(pieces: AsyncIterator[bytes], to_path: Path) -> SandboxRef:
    """Write the pieces to a new file and return its reference. Raise Rejected if they are together larger than a sandbox may be."""
    hasher, size = hashlib.sha256(), 0
    with to_path.open("xb") as file:
        async for piece in pieces:
            size += len(piece)
            if size > MAX_OBJECT:
                raise Rejected("SANDBOX_TOO_LARGE", f"the output is over {MAX_OBJECT:,} bytes")
            hasher.update(piece)
            await asyncio.to_thread(file.write, piece)
    return SandboxRef(sha256=hasher.hexdigest(), size=size)
