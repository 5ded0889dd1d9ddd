"""ARC's REST interface 1.0, which later versions speak too: as much of it as pilots need.

We are known by an X.509 proxy or by a bearer token; both are read anew for each connection, since others renew them.
"""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec

from wms.errors import Unavailable

API = "rest/1.0"
CALL_SECONDS = 60.0
CONNECTIONS = 8
READ_LIMIT = 64 * 1024 * 1024
"""Of a file no more is read to come to its end."""


class Element(NamedTuple):
    """An element and how we are known there: by a proxy, one file with certificate, key and chain, or a token's file."""

    url: str
    queue: str = ""
    proxy: str = ""
    token: str = ""
    authorities: str = ""
    """Who may vouch for it: a file of certificates; empty: whom this machine trusts."""


class Answer(NamedTuple):
    """What the element says of one job of those asked for."""

    code: int
    reason: str
    body: Mapping[str, Any]

    @property
    def job(self) -> str:
        """The element's own id of the job."""
        return str(self.body.get("id", ""))

    @property
    def state(self) -> str:
        """ARC's word for the job's state, or nothing."""
        return str(self.body.get("state", ""))

    @property
    def activity(self) -> Mapping[str, Any]:
        """The job's GLUE 2 document, or nothing."""
        document = self.body.get("info_document") or {}
        found = document.get("ComputingActivity", {}) if isinstance(document, dict) else {}
        return found if isinstance(found, dict) else {}


class ArcRest:
    """A connection to one element. All calls raise Unavailable when it does not answer, or not as ARC does."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._url = f"{element.url.rstrip('/')}/{API}"

    async def __aenter__(self) -> Self:
        """Connect under our credential as it is now. Raises Unavailable if that cannot be read."""
        headers = {"Accept": "application/json"}
        try:
            trusted = ssl.create_default_context(cafile=self._element.authorities or None)
            if self._element.proxy:
                trusted.load_cert_chain(self._element.proxy)
            if self._element.token:
                token = Path(self._element.token).read_text("ascii").strip()  # noqa: ASYNC240 - a line
                headers["Authorization"] = f"Bearer {token}"
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self._element.url}: our credential cannot be read: {error}") from None
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=trusted, limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await self._session.close()

    async def create(self, descriptions: Sequence[str]) -> list[Answer]:
        """Submit jobs described in xRSL in one call; the answers are in their order."""
        text = (
            descriptions[0] if len(descriptions) == 1 else "+" + "".join(f"({each})" for each in descriptions)
        )
        return _answers(await self._call("POST", "jobs?action=new", text.encode(), "application/rsl"))

    async def jobs(self) -> set[str]:
        """Return the ids of all jobs that are ours there."""
        return {answer.job for answer in _answers(await self._call("GET", "jobs"))}

    async def ask(self, action: str, jobs: Sequence[str]) -> list[Answer]:
        """Have one thing done to jobs, or told of them; the answers are in their order."""
        wanted = [{"id": job} for job in jobs]
        body = msgspec.json.encode({"job": wanted[0] if len(wanted) == 1 else wanted})
        return _answers(await self._call("POST", f"jobs?action={action}", body, "application/json"))

    async def put(self, job: str, name: str, content: str) -> None:
        """Write a file into a job's session directory."""
        await self._call("PUT", f"jobs/{job}/session/{name}", content.encode(), "application/octet-stream")

    async def tail(self, job: str, name: str, limit: int) -> str:
        """Return the last `limit` bytes of a file in a job's session directory, nothing if there is none."""
        end, read = b"", 0
        try:
            async with self._session.get(f"{self._url}/jobs/{job}/session/{name}") as answer:
                if answer.status != 200:
                    return ""
                async for some in answer.content.iter_chunked(limit):
                    end, read = (end + some)[-limit:], read + len(some)
                    if read > READ_LIMIT:
                        break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unavailable(error) from None
        return end.decode("utf-8", "replace")

    async def _call(self, method: str, path: str, data: bytes = b"", kind: str = "application/json") -> bytes:
        headers = {"Content-Type": kind}
        try:
            async with self._session.request(
                method, f"{self._url}/{path}", data=data, headers=headers
            ) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unavailable(error) from None
        if answer.status >= 300:
            raise self._unavailable(f"{method} {path.partition('?')[0]}: HTTP {answer.status}")
        return body

    def _unavailable(self, why: object) -> Unavailable:
        return Unavailable(f"{self._element.url}: {str(why) or type(why).__name__}")


def _answers(body: bytes) -> list[Answer]:
    """Return what is said of each job: A-REX says it as an object for one, as a list for many, as nothing for none."""
    try:
        told = msgspec.json.decode(body).get("job", []) if body.strip() else []
        return [
            Answer(int(each.get("status-code", 200)), str(each.get("reason", "")), each)
            for each in (told if isinstance(told, list) else [told])
        ]
    except (msgspec.DecodeError, AttributeError, ValueError) as error:
        raise Unavailable(f"an answer that is none of ARC's: {error}") from None
