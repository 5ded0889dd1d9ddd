"""Users of a gateway over HTTPS: those who submit, those who look at lists, and those who follow their jobs."""

import asyncio
import itertools
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec

from bench.measuring import Figures, median, percentile
from bench.validity import InvalidError
from wms.auth.keys import SigningKey
from wms.auth.principal import Right
from wms.auth.token import Claims, mint
from wms.embedded.keys_and_tokens import VO
from wms.runtime import clock

DAY = 86_400.0
PIECE_BYTES = 65_536
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}
_CERTIFICATE = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")  # fmt: skip


def certificate(directory: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine and its key; return both files."""
    made = directory / "gateway.pem", directory / "gateway.key"
    command = ["openssl", *_CERTIFICATE, "-out", str(made[0]), "-keyout", str(made[1])]
    subprocess.run(command, check=True, capture_output=True)
    return made


class Taken(NamedTuple):
    """Answers that were waited for: how long each took, and the seconds in which all of them came."""

    seconds: list[float]
    within: float

    def figures(self) -> Figures:
        return {
            "per_second": round(len(self.seconds) / self.within),
            "p50_ms": median([1e3 * each for each in self.seconds]),
            "p99_ms": percentile([1e3 * each for each in self.seconds], 0.99),
        }


class Users:
    """So many users, each with a token, and their connections to one gateway."""

    def __init__(self, url: str, authority: Path, key: SigningKey, count: int) -> None:
        self.url = url
        self.owners = [f"bench-{n}" for n in range(count)]
        self._key = key
        self.tokens = [self._token(each) for each in self.owners]
        self._trusted = ssl.create_default_context(cafile=str(authority))
        self._numbers = itertools.count()

    def add(self, owner: str, rights: frozenset[Right], *, at: int) -> None:
        """Let the user with the number `at` be another one, with these rights."""
        self.owners[at] = owner
        self.tokens[at] = self._token(owner, rights)

    def _token(self, owner: str, rights: frozenset[Right] = frozenset()) -> str:
        claims = Claims(kind="user", owner=owner, group="users", vo=VO, rights=rights)
        return mint(self._key, claims, DAY, clock.timestamp())

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trusted)
        self.session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    def headers(self, user: int) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[user % len(self.tokens)]}"}

    async def ask(self, user: int, method: str, path: str, **said: Any) -> Any:
        """Return the parsed answer to a user's request; InvalidError: it is refused."""
        headers = self.headers(user) | said.pop("headers", {})
        async with self.session.request(method, f"{self.url}{path}", headers=headers, **said) as answer:
            read = await answer.read()
            if answer.status not in (200, 201):
                raise InvalidError(f"{method} {path}: {answer.status} {read[:300]!r}")
            return msgspec.json.decode(read)

    async def submit_one(self, user: int) -> int:
        """Submit one job; return its id."""
        n = next(self._numbers)
        raw = b'{"executable":"sim","arguments":["%d"],"name":"sim-%d","cpu_time":600,"sites":["site-0"]}' % (
            n,
            n,
        )
        taken = await self.ask(user, "POST", "/jobs", data=raw, headers=JSON)
        return int(taken["ids"][0][0])

    async def submit_lines(self, user: int, body: bytes) -> int:
        """Stream descriptions; return how many jobs they became."""
        taken = await self.ask(user, "POST", "/jobs", data=_pieces(body), headers=LINES)
        return sum(high - low + 1 for low, high in taken["ids"])

    async def in_turn(self, act: Callable[[int], Awaitable[Any]], at_once: int, seconds: float) -> Taken:
        """Let so many act again and again for so long, each for a user of its own."""
        found: list[float] = []
        began = time.perf_counter()

        async def one(user: int) -> None:
            while (now := time.perf_counter()) < began + seconds:
                await act(user)
                found.append(time.perf_counter() - now)

        await asyncio.gather(*map(one, range(at_once)))
        return Taken(found, time.perf_counter() - began)


def lines(count: int, queues: int) -> bytes:
    """Return the descriptions of so many jobs, one a line, for so many sites."""
    form = b'{"executable":"sim","arguments":["%d"],"name":"sim-%d","cpu_time":600,"sites":["site-%d"]}\n'
    return b"".join(form % (n, n, n % queues) for n in range(count))


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


class Dashboards:
    """Streams of events, one of each user, and what they told."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._tasks: list[asyncio.Task[None]] = []
        self.open = 0
        self.told: list[set[int]] = [set() for _ in users.owners]
        """The jobs that each user was told of."""

    async def follow(self) -> None:
        """Open all streams, and return once each has said where it begins."""
        self._tasks = [asyncio.create_task(self._read(n)) for n in range(len(self._users.owners))]
        while self.open < len(self._tasks):
            for each in self._tasks:
                if each.done():
                    each.result()
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until_told(self, wanted: Sequence[set[int]], within: float) -> None:
        """Wait until each user was told of these jobs; InvalidError: some never were, or of others' jobs."""
        for _ in range(int(within * 10)):
            if self.told == list(wanted):
                return
            await asyncio.sleep(0.1)
        missing = sum(len(w - t) for w, t in zip(wanted, self.told, strict=True))
        foreign = sum(len(t - w) for w, t in zip(wanted, self.told, strict=True))
        raise InvalidError(f"{missing} jobs were not told of, {foreign} to whom they are not")

    async def _read(self, user: int) -> None:
        headers = self._users.headers(user)
        url = f"{self._users.url}/events"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._users.session.get(url, headers=headers, timeout=timeout) as answer:
            if answer.status != 200:
                raise InvalidError(f"a stream was refused: {answer.status} {(await answer.read())[:300]!r}")
            is_open = False
            async for line in answer.content:
                if line.startswith(b"id: ") and not is_open:
                    is_open = True
                    self.open += 1
                elif line.startswith(b"data: "):
                    self._take(user, line[6:])

    def _take(self, user: int, raw: bytes) -> None:
        fact = msgspec.json.decode(raw)
        match fact["type"]:
            case "jobs-queued":
                self.told[user].update(range(fact["first"], fact["first"] + fact["count"]))
            case "jobs-moved":
                self.told[user].update(each["job_id"] for each in fact["events"])
            case "job-event":
                self.told[user].add(fact["job_id"])
