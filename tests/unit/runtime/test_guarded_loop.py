"""The event loop of services: its connections notice a host that vanishes, and its tasks obey."""

import asyncio
import socket
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from wms import cancellation
from wms.cancellation import InsistentTask
from wms.runtime import guarded_loop
from wms.runtime.guarded_loop import GuardedLoop

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=GuardedLoop) as runner:
        return runner.run(work)


async def connected() -> tuple[int, int]:
    """Open a TCP connection; return what its socket waits for a host that has vanished."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        sock = writer.get_extra_info("socket")
        found = (
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
        )
        writer.close()
        return found


def test_each_connection_notices_a_host_that_vanishes() -> None:
    assert run(connected()) == (1, guarded_loop.VANISHED_SECONDS * 1000)


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_loop, "OPEN_SECONDS", 0.1)

    async def open_one() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            full.setblocking(False)
            # The kernel takes one connection for a queue of none, and lets the next one wait.
            for _ in range(3):
                await asyncio.open_connection(*full.getsockname())

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        run(open_one())
    assert time.monotonic() - began < 20


def test_a_connection_over_a_unix_socket_has_no_such_limits(tmp_path: Path) -> None:
    async def open_one() -> None:
        server = await asyncio.start_unix_server(lambda _, writer: writer.close(), tmp_path / "socket")
        async with server:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(tmp_path / "socket"))
            sock.setblocking(False)
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=sock)
            transport.close()

    run(open_one())


def test_tasks_are_insistent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "REPEAT_SECONDS", 0.01)

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            await asyncio.sleep(1_000)

    async def main() -> bool:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return isinstance(task, InsistentTask)

    assert run(main())
