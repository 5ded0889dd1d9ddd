"""The sandbox store behind a gateway: it takes archives of input files, and returns the output archive of a job."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, Final

import aiohttp
import msgspec

from wms.errors import Unavailable
from wms.gateway.refusal import refusal
from wms.jobdesc.description import SandboxRef
from wms.transfer.archive_download import ANSWER_LIMIT, append_rest
from wms.transfer.stored_object import CHUNK, MAX_OBJECT, TornSandbox, copied
from wms.web import body

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
        try:
            with await asyncio.to_thread(to_path.open, "x+b") as file:
                await self._fetch(file)
                found = await asyncio.to_thread(_reference, file)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unavailable(f"the output of job {self._job_id} did not come: {error!r}") from None
        if found.sha256 != sha256:
            await asyncio.to_thread(to_path.unlink, missing_ok=True)
            raise TornSandbox(f"the output of job {self._job_id} is not what its attempt stored")
        return found

    async def _fetch(self, file: BinaryIO) -> None:
        """Fetch the output into an empty file. A download that breaks goes on as long as each try brings something."""
        url = f"{self._url}/jobs/{self._job_id}/output"
        while True:
            had = file.tell()
            try:
                return await append_rest(self._session, url, self._headers, TIMEOUT, file)
            except (aiohttp.ClientError, OSError, TimeoutError):
                if file.tell() <= had:
                    raise

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


def _reference(file: BinaryIO) -> SandboxRef:
    """Return the SHA-256 digest and the size of a file's content. Blocking."""
    file.seek(0)
    return copied(file, None, MAX_OBJECT)
