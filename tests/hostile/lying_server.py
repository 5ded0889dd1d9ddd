"""A web server with evil answers: as an index server of a submission, as the storage of an input, as the target of an output."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from tests.services.discovery.index_servers import queue
from tests.web_server import web_server
from wms.discovery.document import LEADS_LIMIT

PIECE = bytes(65_536)
CONTENT = b"what was promised\n"
METADATA = "http://169.254.169.254/latest/meta-data"
"""What a redirection to the inside of a site leads to."""


def own_element(*rules: str) -> bytes:
    """Return GLUE of the element of the system under attack, with these rules of access."""
    return queue("local", *rules).replace(b"GlueCEName: main", b"GlueCEName: local")


def lies() -> bytes:
    """Return GLUE of the system's own element with numbers that cannot be, and of elements with names that cannot be."""
    nonsense = own_element("VO:mordor").replace(b"GlueCEInfoTotalCPUs: 64", b"GlueCEInfoTotalCPUs: 9e999")
    nonsense = nonsense.replace(b"Time: 2880", b"Time: -99999999999999999999")
    strange = [queue(site) for site in ("*", "x" * 5_000, "\x1b[2J", "../../etc")]
    return b"\n".join([nonsense, *strange])


class LyingServer:
    """Answers by the path; `asked` counts requests by path, `stored` has what was put."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: Counter[str] = Counter()
        self.stored: dict[str, int] = {}

    def url(self, path: str) -> str:
        """Return a URL of the server."""
        return f"http://127.0.0.1:{self.port}/{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as the first part of the path says."""
        kind = request.path.split("/")[1]
        self.asked[kind] += 1
        streams: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            "silent": self._silent,
            "endless": self._endless,
            "drip": self._drip,
            "swallow": self._swallow,
        }
        if kind in streams:
            return await streams[kind](request)
        return self._plain(kind, request)

    def _plain(self, kind: str, request: web.Request) -> web.Response:
        moved = {
            "loop": f"/loop/{self.asked['loop']}",
            "inside": METADATA,
            "away": "file:///etc/passwd",
            "other": f"http://127.0.0.2:{self.port}/good",
        }
        if kind in moved:
            return web.Response(status=302, headers={"Location": moved[kind]})
        statuses = {"full": 507, "refuse": 403, "busy": 503}
        if kind in statuses:
            return web.Response(status=statuses[kind])
        return web.Response(body=self._body(kind, request))

    def _body(self, kind: str, request: web.Request) -> bytes:
        match kind:
            case "lies":
                return lies()
            case "millions":
                return b"\n".join(queue(f"s{n}.example.org") for n in range(5_000))
            case "maze":  # each of its pages leads to thousands of others
                leads = (
                    f"u={self.url(f'maze/{request.path}/{n}'[:200])} t=archery.group"
                    for n in range(LEADS_LIMIT)
                )
                return "\n".join(["o=group", *leads]).encode()
            case "element":
                return own_element()
            case _:
                return CONTENT

    async def _silent(self, _: web.Request) -> web.StreamResponse:
        await asyncio.sleep(600)
        return web.Response()

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        answer = await _begun(request)
        while True:
            await answer.write(PIECE)

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        answer = await _begun(request)
        while True:
            await answer.write(b"x")
            await asyncio.sleep(0.2)

    async def _swallow(self, request: web.Request) -> web.StreamResponse:
        """Take a body, and say that everything was stored; keep nothing of it."""
        self.stored[request.path] = len(await request.read())
        return web.Response(status=201)


async def _begun(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    return answer


@contextlib.asynccontextmanager
async def lying_server() -> AsyncIterator[LyingServer]:
    """Run one."""
    server = LyingServer()
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with web_server(app) as server.port:
        yield server
