"""Documents of one user that are dear to read, from a process of its own: `python -m tests.hostile.document_attack` with an AttackedGateway on stdin.

It attacks until its input ends, and then prints how often each status was answered. A status of 0 stands for a connection that was cut.
"""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator

import aiohttp
import msgspec

CONNECTIONS = 24
JOBS = 130
DEAR = "((((a>1))))"
LIST = 8


class AttackedGateway(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway's address, and the token of a user."""

    url: str
    token: str


def lines(size: int) -> bytes:
    """Return the lines of a stream whose requirements have about `size` characters each; the last line is malformed, so that nothing is stored."""
    requirements = "&&".join([DEAR] * (size // (len(DEAR) + 2)))
    form = '{"executable":"x","requirements":"%s&&b==%d"}\n'
    return "".join(form % (requirements, n) for n in range(JOBS)).encode() + b"{]\n"


def series(count: int) -> bytes:
    """Return a list of arrays, each of twenty series of a million values."""
    one = {
        "executable": "x",
        "array": 1_000_000,
        "parameters": {f"p{n}": {"start": 0, "step": 1} for n in range(20)},
    }
    return msgspec.json.encode([one] * count)


def documents() -> Iterator[tuple[bytes, str]]:
    """Yield what each connection sends in turn, with its media type."""
    yield lines(15_000), "application/x-ndjson"
    yield lines(4_000), "application/x-ndjson"
    yield series(LIST), "application/json"


async def attack(gateway: AttackedGateway) -> Counter[int]:
    """Send documents over many connections until the standard input ends."""
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    statuses = Counter[int]()
    sent = list(documents())

    async def keep_sending(turn: int) -> None:
        while True:
            body, kind = sent[turn % len(sent)]
            turn += 1
            try:
                async with session.post(
                    f"{gateway.url}/jobs", data=body, headers={"Content-Type": kind}
                ) as answer:
                    await answer.read()
                    statuses[answer.status] += 1
            except (aiohttp.ClientError, OSError):
                statuses[0] += 1

    headers = {"Authorization": f"Bearer {gateway.token}"}
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
        tasks = [asyncio.create_task(keep_sending(n)) for n in range(CONNECTIONS)]
        await ended
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(tasks)
    return statuses


if __name__ == "__main__":
    found = asyncio.run(attack(msgspec.json.decode(sys.stdin.buffer.readline(), type=AttackedGateway)))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
