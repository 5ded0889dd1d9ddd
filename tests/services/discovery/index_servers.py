"""Index servers and elements for tests: real web servers that tell what a test says, when it says so."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tests.web_server import web_server
from wms.discovery.address import Address, address

ARC_XML = (Path(__file__).parents[2] / "data" / "glue" / "arc.xml").read_bytes()

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Held:
    """An answer that does not come until it is let go."""

    def __init__(self, then: bytes = b"") -> None:
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self._then = then

    async def __call__(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.let_go.wait()
        return web.Response(body=self._then)


class IndexServers:
    """Many index servers, by the paths of one web server; who asked which how often is counted."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes | Answer] = {}
        self.asked: Counter[str] = Counter()
        self.headers: dict[str, dict[str, str]] = {}
        self.port = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def index(self, path: str) -> Address:
        return address(self.url(path), "index")

    def lists(self, path: str, *, indexes: tuple[str, ...] = (), elements: tuple[str, ...] = ()) -> None:
        """Have a path tell of other paths."""
        lines = [f"u={self.url(each)} t=archery.group" for each in indexes]
        lines += [f"u={self.url(each)} t=org.nordugrid.arcrest" for each in elements]
        self.answers[path] = "\n".join(["o=group", *lines]).encode()

    def describes(self, path: str, site: str, *rules: str) -> None:
        """Have a path describe the queue `main` of a site, in LDIF."""
        self.answers[path] = queue(site, *rules)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.lstrip("/")
        self.asked[path] += 1
        self.headers[path] = dict(request.headers)
        answer = self.answers.get(path)
        if answer is None:
            raise web.HTTPNotFound
        return web.Response(body=answer) if isinstance(answer, bytes) else await answer(request)


def queue(site: str, *rules: str) -> bytes:
    """Return a computing element of GLUE 1.3 in LDIF."""
    lines = [
        f"dn: GlueCEUniqueID=ce.{site}:2119/main,mds-vo-name={site},o=grid",
        "objectClass: GlueCE",
        f"GlueCEUniqueID: ce.{site}:2119/main",
        "GlueCEName: main",
        "GlueCEStateStatus: Production",
        "GlueCEInfoTotalCPUs: 64",
        "GlueCEPolicyMaxWallClockTime: 2880",
        f"GlueForeignKey: GlueSiteUniqueID={site}",
        *(f"GlueCEAccessControlBaseRule: {rule}" for rule in rules),
    ]
    return "\n".join([*lines, ""]).encode()


@asynccontextmanager
async def index_servers() -> AsyncIterator[IndexServers]:
    """Run them."""
    servers = IndexServers()
    application = web.Application()
    application.router.add_get("/{path:.*}", servers.handle)
    async with web_server(application) as servers.port:
        yield servers
