"""The doorkeeper: a process in the Kafka broker's network namespace that connects clients from outside, by passing them TCP sockets.

`python doorkeeper.py --port=PORT PATH...` enables the namespace's loopback device and listens on a Unix socket at each PATH. To each client
it sends a TCP socket that is connected to the broker's PORT. It ends with its parent. It imports only the standard library, so that it
starts fast.
"""

import argparse
import array
import asyncio
import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
from pathlib import Path

LOOPBACK = "127.0.0.1"
READY, REFUSED = b"+", b"-"
CONNECT_SECONDS = 5.0
BACKLOG = 1_024
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_PR_SET_PDEATHSIG = 1


def raise_loopback() -> None:
    """Enable the loopback device of this process's network namespace, which is disabled in a new one. Raise OSError if that is forbidden."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        request = bytearray(struct.pack("16sh14x", b"lo", 0))
        fcntl.ioctl(each, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("h", request, 16)
        struct.pack_into("h", request, 16, flags | _IFF_UP)
        fcntl.ioctl(each, _SIOCSIFFLAGS, request)


def listen(path: Path) -> socket.socket:
    """Return a non-blocking Unix socket that listens at this path, and replace an existing file there."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    # The mode of the directory says who may connect; it is set before the socket exists.
    path.chmod(0o666)
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening


async def serve(listening: socket.socket, port: int) -> None:
    """For each client of the Unix socket `listening`, connect to the broker's TCP `port`, and send the client that socket. Run until cancelled."""
    loop = asyncio.get_running_loop()
    calls: set[asyncio.Task[None]] = set()
    while True:
        caller, _ = await loop.sock_accept(listening)
        task = asyncio.create_task(_answer(caller, port))
        calls.add(task)
        task.add_done_callback(calls.discard)


async def _answer(caller: socket.socket, port: int) -> None:
    with caller, socket.socket(socket.AF_INET) as connection, contextlib.suppress(OSError):
        connection.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().sock_connect(connection, (LOOPBACK, port))
        except (OSError, TimeoutError):
            caller.send(REFUSED)
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        caller.sendmsg(
            [READY], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))]
        )


async def _run(paths: list[Path], port: int) -> None:
    async with asyncio.TaskGroup() as group:
        for path in paths:
            group.create_task(serve(listen(path), port))


def main() -> None:
    """Run the doorkeeper, with the options of the command line, until its parent ends."""
    parser = argparse.ArgumentParser(prog="doorkeeper", description=main.__doc__)
    parser.add_argument("--port", type=int, default=9092, help="the broker's port on the loopback")
    parser.add_argument("--try", dest="only_try", action="store_true", help="only make the loopback work")
    parser.add_argument("paths", nargs="*", type=Path, help="where to listen")
    options = parser.parse_args()
    # Entering a namespace may have cleared the signal at the parent's death.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        return
    # The kernel refuses descriptors to a sender whose limit is below the number that its account has under way.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    raise_loopback()
    if not options.only_try:
        asyncio.run(_run(options.paths, options.port))


if __name__ == "__main__":
    main()
