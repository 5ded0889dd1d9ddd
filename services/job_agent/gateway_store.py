"""The sandbox store as a pilot reaches it through a gateway: input archives of its jobs come down, their outputs go up.

No directory need be shared with the node. Each request carries the pilot's present token and names the attempt; the gateway asks the
job manager whether the pilot holds that. Transfers are tried again while the gateway is away, and downloads go on where they broke.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TypeVar

import msgspec

from wms.bounded_cache import BoundedCache
from wms.errors import Rejected, Unavailable
from wms.gateway.address import PREFIX, checked_url
from wms.gateway.direct_download import download as open_download
from wms.gateway.refusal import refusal
from wms.ids import AttemptId
from wms.jobdesc.description import SandboxRef
from wms.runtime.pilot_config import SandboxSettings
from wms.transfer import Objects, TornSandbox, digest_of, open_store
from wms.transfer.store import CHUNK, MAX_OBJECT
from wms.web import WebIdentity, body

if TYPE_CHECKING:  # pilots with a directory need no HTTP client
    import aiohttp

PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
"""Seconds between two tries of a transfer. After the last of them it fails."""
SILENT_SECONDS: Final = 60.0
"""Seconds without a byte after which a try fails."""
KEPT_SECONDS: Final = 600.0
"""Seconds for which an archive that was stored is not sent again. Stores keep new objects for much longer."""
ANSWER_LIMIT: Final = 100_000
ARCHIVE: Final = "application/gzip"

T = TypeVar("T")


class AttemptStores(Protocol):
    """The sandbox store of a pilot, from which each attempt gets what it may read and write."""

    def of_attempt(self, attempt_id: AttemptId) -> Objects:
        """Return the store as this attempt may use it."""


@contextlib.asynccontextmanager
async def opened_store(settings: SandboxSettings, token: Callable[[], str]) -> AsyncIterator[AttemptStores]:
    """Open the store of a pilot, for an `async with` block: a directory, or a gateway, to which `token` gives the pilot's token.

    Raise Rejected for an address of neither, or that of a gateway without TLS on another machine; Unavailable if the directory cannot be
    made or `authorities` cannot be read.
    """
    if not settings.url.startswith(("https://", "http://")):
        yield open_store(settings.url)
        return
    import aiohttp

    url = checked_url(settings.url)
    context = WebIdentity(authorities=settings.authorities).context()
    timeout = aiohttp.ClientTimeout(total=3_600, sock_connect=15, sock_read=SILENT_SECONDS)
    connector = aiohttp.TCPConnector(ssl=context if url.startswith("https:") else True)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, trust_env=True, auto_decompress=False
    ) as session:
        yield PilotStore(session, url, token)


class PilotStore:
    """The store behind one gateway. `token` returns the pilot's present token."""

    def __init__(self, session: "aiohttp.ClientSession", url: str, token: Callable[[], str]) -> None:
        self.session = session
        self.url = f"{url}{PREFIX}/attempts"
        self.kept = BoundedCache[str, float](10_000)
        """When each archive was last stored, in seconds of the monotonic clock, by its digest."""
        self._token = token

    def of_attempt(self, attempt_id: AttemptId) -> "AttemptObjects":
        """Return the store as this attempt may use it."""
        return AttemptObjects(self, f"{self.url}/{attempt_id.job_id}/{attempt_id.epoch}")

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request, with the present token."""
        return {"Authorization": f"Bearer {self._token()}", "Accept-Encoding": "identity"}


class AttemptObjects:
    """The input archives of one attempt, and the place of its output."""

    def __init__(self, store: PilotStore, url: str) -> None:
        self._store = store
        self._url = url
        self._loop = asyncio.get_running_loop()

    @property
    def max_object(self) -> int:
        """The size in bytes of the largest archive that is sent or fetched."""
        return MAX_OBJECT

    def keep(self, source: Path | bytes) -> SandboxRef:
        """Send these bytes, or the content of this file, as the output; return the reference. It blocks, in a thread beside the loop.

        Raise Rejected if the archive is over the limit or the job is the pilot's no more, Unavailable if no gateway takes it.
        """
        return asyncio.run_coroutine_threadsafe(self._keep(source), self._loop).result()

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Copy an input archive to `to_path` after its bytes are verified. A download that breaks goes on where it was.

        Raise Rejected if it is none of the job's inputs or the job is the pilot's no more, Unavailable if no gateway sends it. Then no
        file is at `to_path`.
        """
        aside = to_path.with_name(f".{to_path.name}.{secrets.token_hex(4)}")
        try:
            with await asyncio.to_thread(aside.open, "x+b") as file:
                await _again(lambda: self._fetch_rest(sha256, file))
            found = await asyncio.to_thread(_reference, aside)
            if found.sha256 != sha256:
                raise TornSandbox(f"the sandbox {sha256[:12]} came with other bytes than its name says")
            await asyncio.to_thread(aside.replace, to_path)
        finally:
            await asyncio.to_thread(aside.unlink, missing_ok=True)
        return found

    async def _keep(self, source: Path | bytes) -> SandboxRef:
        found = await asyncio.to_thread(_reference, source)
        if found.size > MAX_OBJECT:
            raise Rejected("SANDBOX_TOO_LARGE", f"an archive of {found.size:,} bytes is over {MAX_OBJECT:,}")
        kept_at = self._store.kept.get(found.sha256)
        if kept_at is None or time.monotonic() - kept_at > KEPT_SECONDS:
            stored = await _again(lambda: self._put(source))
            if stored != found:
                raise Unavailable("the gateway stored other bytes than were sent")
            self._store.kept[found.sha256] = time.monotonic()
        return found

    async def _put(self, source: Path | bytes) -> SandboxRef:
        with _translated("the output could not be sent"):
            async with self._store.session.put(
                f"{self._url}/output",
                data=source if isinstance(source, bytes) else _pieces(source),
                headers=self._store.headers | {"Content-Type": ARCHIVE},
                allow_redirects=False,
            ) as answer:
                read = await body(answer, ANSWER_LIMIT)
                if answer.status != 201:
                    raise refusal(answer.status, read)
                return msgspec.json.decode(read, type=SandboxRef)

    async def _fetch_rest(self, sha256: str, file: BinaryIO) -> None:
        """Fetch an input archive, or what the file lacks of it. Raise Unavailable if it breaks: what came stays in the file."""
        offset = file.seek(0, os.SEEK_END)
        headers = self._store.headers | ({"Range": f"bytes={offset}-"} if offset else {})
        with _translated("the input did not come"):
            async with open_download(
                self._store.session, f"{self._url}/inputs/{sha256}", headers, self._store.session.timeout
            ) as answer:
                if answer.status == 416:  # all of it is there
                    return
                if answer.status not in (200, 206):
                    raise refusal(answer.status, await body(answer, ANSWER_LIMIT))
                await _append(answer, file, offset if answer.status == 206 else 0)


async def _append(answer: "aiohttp.ClientResponse", file: BinaryIO, offset: int) -> None:
    """Write the body of an answer to a file, from the byte `offset` on. Raise Rejected if it is more than a sandbox may have."""
    file.seek(offset)
    file.truncate()
    async for piece in answer.content.iter_chunked(CHUNK):
        if file.tell() + len(piece) > MAX_OBJECT:
            raise Rejected("SANDBOX_TOO_LARGE", f"the input is over {MAX_OBJECT:,} bytes")
        await asyncio.to_thread(file.write, piece)


async def _again(transfer: Callable[[], Awaitable[T]]) -> T:
    """Call `transfer` until it raises Unavailable no more, with pauses; raise the last such error."""
    for pause in PAUSES:
        try:
            return await transfer()
        except Unavailable:
            await asyncio.sleep(pause)
    return await transfer()


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    import aiohttp

    try:
        yield
    except (aiohttp.ClientError, ConnectionError) as error:
        raise Unavailable(f"{what}: {str(error) or type(error).__name__}") from None
    except TimeoutError:
        raise Unavailable(f"{what}: nothing came for {SILENT_SECONDS:g} s") from None


def _reference(source: Path | bytes) -> SandboxRef:
    """Return the digest and the size of these bytes, or of a file. The call blocks."""
    if isinstance(source, bytes):
        return SandboxRef(sha256=digest_of(source), size=len(source))
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SandboxRef(sha256=digest, size=source.stat().st_size)


async def _pieces(source: Path) -> AsyncIterator[bytes]:
    with source.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, CHUNK):
            yield piece
