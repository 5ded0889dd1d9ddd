"""A client of ARC's REST interface 1.0, which later ARC versions also serve, with the calls that dispatchers and advertisers need."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec

from wms.errors import Unavailable
from wms.web import WebIdentity, body

API = "rest/1.0"
CALL_SECONDS = 60.0
CONNECTIONS = 8
_PIECE = 256 * 1024
ANSWER_LIMIT = 64 * 1024 * 1024
"""How many bytes are read at most of an answer, or of a file of which only the end is returned."""


class ArcEndpoint(NamedTuple):
    """An ARC element's address and the credential for it: a proxy (one file with certificate, key and chain) or a file with a token."""

    url: str
    queue: str = ""
    proxy: str = ""
    token: str = ""
    authorities: str = ""
    """A file or directory with the CA certificates to trust; empty for those that this machine trusts."""


class ArcJobStatus(NamedTuple):
    """The element's answer about one job: an HTTP status code, a reason, and the decoded JSON."""

    code: int
    reason: str
    body: Mapping[str, Any]

    @property
    def job(self) -> str:
        """The id that the computing element gave the job; empty if the answer has none."""
        return str(self.body.get("id", ""))

    @property
    def state(self) -> str:
        """The state of the job by ARC's name for it, such as RUNNING; empty if the answer has none."""
        return str(self.body.get("state", ""))

    @property
    def activity(self) -> Mapping[str, Any]:
        """The job's GLUE 2 document (ComputingActivity); empty if the answer has none."""
        document = self.body.get("info_document") or {}
        found = document.get("ComputingActivity", {}) if isinstance(document, dict) else {}
        return found if isinstance(found, dict) else {}


class ArcRest:
    """A connection to one ARC element, to be used in `async with`.

    Calls raise Unavailable if the element does not answer, answers with an error, or does not answer as ARC does.
    """

    def __init__(self, element: ArcEndpoint) -> None:
        self._url = f"{element.url.rstrip('/')}/{API}"
        self._credential = WebIdentity(
            proxy_file=element.proxy, token_file=element.token, authorities=element.authorities
        )

    async def __aenter__(self) -> Self:
        """Read the credential's files and open the connection. Raise Unavailable if a file cannot be read."""
        trusted = await asyncio.to_thread(self._credential.context)
        self._session = aiohttp.ClientSession(
            headers={"Accept": "application/json", **self._credential.bearer()},
            connector=aiohttp.TCPConnector(ssl=trusted, limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS),
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._session.close()

    async def information(self, limit: int) -> tuple[bytes, str]:
        """Return the element's description of itself, a GLUE 2.0 document, and its content type. XML is requested.

        Raise Unavailable if the document has more than `limit` bytes.
        """
        # Without this header it answers in HTML. Its JSON is converted from its XML, and not all versions have it.
        async with self._asked("GET", "info", {"Accept": "application/xml"}) as answer:
            return await body(answer, limit), answer.content_type

    async def create(self, descriptions: Sequence[str]) -> list[ArcJobStatus]:
        """Submit jobs in one call, each by a description in xRSL. Return the answers in the same order."""
        text = (
            descriptions[0] if len(descriptions) == 1 else "+" + "".join(f"({each})" for each in descriptions)
        )
        return _answers(await self._call("POST", "jobs?action=new", text.encode(), "application/rsl"))

    async def jobs(self) -> set[str]:
        """Return the ids of all jobs that the computing element lists under this credential."""
        return {answer.job for answer in _answers(await self._call("GET", "jobs"))}

    async def ask(self, action: str, jobs: Sequence[str]) -> list[ArcJobStatus]:
        """Apply an action to jobs, given by ARC's ids, or ask about them. Return the answers in the same order.

        `action` is "status", "info", "kill" or "clean", as ARC defines them.
        """
        wanted = [{"id": job} for job in jobs]
        named = msgspec.json.encode({"job": wanted[0] if len(wanted) == 1 else wanted})
        return _answers(await self._call("POST", f"jobs?action={action}", named))

    async def put(self, job: str, name: str, content: bytes) -> None:
        """Write the file `name` with this content into the session directory of a job, given by ARC's id."""
        await self._call("PUT", f"jobs/{job}/session/{name}", content, "application/octet-stream")

    async def fetch(self, job: str, name: str, to: Path, limit: int) -> None:
        """Copy the file `name` from the session directory of a job, given by ARC's id, to the path `to`.

        The copy is cut where it would exceed `limit` bytes. A missing file is not copied, and is no error.
        """
        read = 0
        try:
            async with self._asked("GET", f"jobs/{job}/session/{name}") as answer:
                with to.open("wb") as file:
                    async for some in answer.content.iter_chunked(_PIECE):
                        read += len(some)
                        if read > limit:
                            break
                        file.write(some)
        except _Refused:
            return

    async def tail(self, job: str, name: str, limit: int) -> str:
        """Return the last `limit` bytes of a file in a job's session directory as text; empty if there is no such file."""
        end, read = b"", 0
        try:
            async with self._asked("GET", f"jobs/{job}/session/{name}") as answer:
                async for some in answer.content.iter_chunked(limit):
                    end, read = (end + some)[-limit:], read + len(some)
                    if read > ANSWER_LIMIT:
                        break
        except _Refused:
            return ""
        return end.decode("utf-8", "replace")

    async def _call(self, method: str, path: str, data: bytes = b"", kind: str = "application/json") -> bytes:
        async with self._asked(method, path, {"Content-Type": kind}, data) as answer:
            return await body(answer, ANSWER_LIMIT)

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, data: bytes = b""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(
                method, f"{self._url}/{path}", data=data, headers=headers, allow_redirects=False
            ) as answer:
                if answer.status >= 300:
                    raise _Refused(f"{self._url}: {method} {path.partition('?')[0]}: HTTP {answer.status}")
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"{self._url}: {str(error) or type(error).__name__}") from None


class _Refused(Unavailable):
    """The ARC element answered with an HTTP error."""


def _answers(document: bytes) -> list[ArcJobStatus]:
    """Parse ARC's answers about jobs: an object for one job, a list for many, null for none."""
    try:
        told = msgspec.json.decode(document).get("job", []) if document.strip() else []
        return [
            ArcJobStatus(int(each.get("status-code", 200)), str(each.get("reason", "")), each)
            for each in (told if isinstance(told, list) else [told])
        ]
    except (msgspec.DecodeError, AttributeError, ValueError) as error:
        raise Unavailable(f"an answer that is none of ARC's: {error}") from None
