"""The sandbox store as a pilot reaches it through a gateway: input archives of jobs are fetched, outputs are sent.

The node needs no directory that it shares with the services. Each request has the pilot's present token and names the
attempt; the gateway asks the job manager whether the pilot holds that attempt. Transfers are tried again while the gateway
does not answer. Broken downloads are resumed.
"""

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TypeVar

import msgspec

from wms.bounded_cache import BoundedCache
from wms.errors import Rejected, Unavailable
from wms.gateway.address import PREFIX, checked_url
from wms.gateway.refusal import refusal
from wms.ids import AttemptId
from wms.jobdesc.description import SandboxRef
from wms.runtime.pilot_config import SandboxSettings
from wms.transfer import Objects, TornSandbox, digest_of, open_store
from wms.transfer.archive_download import ANSWER_LIMIT, append_rest
from wms.transfer.stored_object import CHUNK, MAX_OBJECT
from wms.web import body

if TYPE_CHECKING:  # pilots with a directory need no HTTP client
    import aiohttp

PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
"""Seconds of pause after each failed try of a transfer. The try after the last pause is the last one: if it fails, the transfer fails."""
TRANSFERS: Final = 100
"""The most transfers of one pilot at a time. Further ones wait."""
SILENT_SECONDS: Final = 60.0
"""Seconds without a byte after which a try of a transfer fails."""
KEPT_SECONDS: Final = 600.0
"""Seconds after an archive was stored during which it is not sent again. Stores keep new objects for much longer."""
ARCHIVE: Final = "application/gzip"

T = TypeVar("T")


class AttemptStores(Protocol):
    """The sandbox store of a pilot. It gives each attempt a store that reads the attempt's inputs and writes its output."""

    def of_attempt(self, attempt_id: AttemptId) -> Objects:
        """Return the store for one attempt: it can fetch the attempt's input archives and store its output."""


@contextlib.asynccontextmanager
async def opened_store(settings: SandboxSettings, token: Callable[[], str]) -> AsyncIterator[AttemptStores]:
    """Yield the sandbox store of a pilot, for an `async with` block: a directory, or a gateway over HTTPS.

    `token` returns the pilot's present token, for requests to the gateway. Raise Rejected if the address in `settings` is of
    neither kind, or of a gateway without TLS on another machine, or if the certificates in `authorities` cannot be read. Raise
    Unavailable if the directory cannot be made.
    """
    if not settings.url.startswith(("https://", "http://")):
        yield open_store(settings.url)
        return
    import aiohttp

    from services.job_agent.gateway_session import gateway_session

    url = checked_url(settings.url)
    timeout = aiohttp.ClientTimeout(total=3_600, sock_connect=15, sock_read=SILENT_SECONDS)
    async with gateway_session(settings.authorities, TRANSFERS, timeout) as session:
        yield PilotStore(session, url, token)


class PilotStore:
    """The sandbox store behind one gateway. `session` is the HTTP client and `url` the gateway's address.

    `token` returns the pilot's present token.
    """

    def __init__(self, session: "aiohttp.ClientSession", url: str, token: Callable[[], str]) -> None:
        self.session = session
        self.url = f"{url}{PREFIX}/attempts"
        self.kept = BoundedCache[str, float](10_000)
        """The time at which each archive was last stored, in seconds of the monotonic clock, by its SHA-256 digest."""
        self._token = token

    def of_attempt(self, attempt_id: AttemptId) -> "AttemptObjects":
        """Return the store for one attempt: it can fetch the attempt's input archives and store its output."""
        return AttemptObjects(self, f"{self.url}/{attempt_id.job_id}/{attempt_id.epoch}")

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP header with the pilot's present token."""
        return {"Authorization": f"Bearer {self._token()}"}


class AttemptObjects:
    """The sandbox store of one attempt: it fetches the attempt's input archives and stores its output, through the gateway.

    `url` is the attempt's address at the gateway. Make it in the event loop; that loop does the transfers.
    """

    def __init__(self, store: PilotStore, url: str) -> None:
        self._store = store
        self._url = url
        self._loop = asyncio.get_running_loop()

    @property
    def max_object(self) -> int:
        """The size in bytes of the largest archive that is sent or fetched."""
        return MAX_OBJECT

    def keep(self, source: Path | bytes) -> SandboxRef:
        """Send these bytes, or the content of this file, as the attempt's output. Return its digest and size.

        The call blocks until all is sent, so call it in a thread beside the event loop. Raise Rejected if the archive is
        larger than `max_object` or the pilot no longer holds the job. Raise Unavailable if the transfer fails at every try.
        """
        return asyncio.run_coroutine_threadsafe(self._keep(source), self._loop).result()

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        """Fetch the input archive with this digest to `to_path`, where it appears once its bytes are verified. Return digest and size.

        A broken download is resumed. Raise Rejected if the job has no such input or the pilot no longer holds the job. Raise
        Unavailable if the transfer fails at every try or the bytes do not have this digest. After an error there is no file
        at `to_path`.
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
        """Append to `file` the part of an input archive that it does not have yet, in one try.

        Raise Unavailable if the download breaks; the received bytes stay in the file. Raise Rejected if the gateway refuses
        it.
        """
        with _translated("the input did not come"):
            session = self._store.session
            url = f"{self._url}/inputs/{sha256}"
            await append_rest(session, url, self._store.headers, session.timeout, file)


async def _again(transfer: Callable[[], Awaitable[T]]) -> T:
    """Call `transfer` until it does not raise Unavailable, with the PAUSES between the calls. Return its result.

    If the last call raises Unavailable too, that error is raised.
    """
    for pause in PAUSES:
        try:
            return await transfer()
        except Unavailable:
            await asyncio.sleep(pause)
    return await transfer()


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    import aiohttp

    from services.job_agent.gateway_session import unanswered

    try:
        yield
    except (aiohttp.ClientError, ConnectionError) as error:
        raise unanswered(what, error) from None
    except TimeoutError:
        raise Unavailable(f"{what}: nothing came for {SILENT_SECONDS:g} s") from None


def _reference(source: Path | bytes) -> SandboxRef:
    """Return the SHA-256 digest and the size of these bytes, or of this file's content. Blocking."""
    if isinstance(source, bytes):
        return SandboxRef(sha256=digest_of(source), size=len(source))
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SandboxRef(sha256=digest, size=source.stat().st_size)


async def _pieces(source: Path) -> AsyncIterator[bytes]:
    with source.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, CHUNK):
            yield piece
