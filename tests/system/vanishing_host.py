"""Hosts of a Postgres server that can vanish without a word: network namespaces, through which alone the server is reached."""

import asyncio
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from tests.waiting import eventually

PORT = 5432
NUMBERS = itertools.count(1)


def is_possible() -> bool:
    """Return whether this process may make network namespaces that drop packets."""
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "iptables")))


class VanishingHost:
    """A host of its own address. While it serves, who connects to it reaches the Postgres server behind a Unix socket."""

    def __init__(self, socket: Path) -> None:
        number = next(NUMBERS)
        self._name = f"wms{os.getpid() % 100_000}n{number}"
        self._subnet = f"10.{77 + number}.{os.getpid() % 250}"
        self._socket = socket
        self._serving: asyncio.subprocess.Process | None = None
        self.address = f"{self._subnet}.2"

    @contextlib.asynccontextmanager
    async def there(self) -> AsyncIterator["VanishingHost"]:
        """Make the namespace, and remove it with all that is in it."""
        name = self._name
        run("ip", "netns", "add", name)
        try:
            run("ip", "link", "add", f"{name}o", "type", "veth", "peer", "name", "inside", "netns", name)
            run("ip", "address", "add", f"{self._subnet}.1/30", "dev", f"{name}o")
            run("ip", "link", "set", f"{name}o", "up")
            self._inside("ip", "address", "add", f"{self.address}/30", "dev", "inside")
            self._inside("ip", "link", "set", "inside", "up")
            yield self
        finally:
            await self._end()
            run("ip", "link", "delete", f"{name}o")
            run("ip", "netns", "delete", name)

    async def serve(self) -> None:
        """Begin to pass connections on to the server."""
        program = [sys.executable, __file__, str(self._socket)]
        self._serving = await asyncio.create_subprocess_exec("ip", "netns", "exec", self._name, *program)
        await eventually(self._answers)

    async def vanish(self) -> None:
        """Drop every packet from now on, those that would say so included, and what the server did for its clients."""
        for chain in ("INPUT", "OUTPUT"):
            self._inside("iptables", "-A", chain, "-j", "DROP")
        await self._end()

    async def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(self.address, PORT)
            writer.close()
            return True
        return False

    async def _end(self) -> None:
        if self._serving is not None and self._serving.returncode is None:
            self._serving.kill()
            await self._serving.wait()

    def _inside(self, *command: str) -> None:
        run("ip", "netns", "exec", self._name, *command)


def run(*command: str) -> None:
    """Run a command to its end. Raise CalledProcessError if it fails."""
    subprocess.run(command, check=True, capture_output=True, timeout=30)


async def pass_on(socket: str) -> None:
    """Pass all connections to `PORT` on to the server behind a Unix socket."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while some := await reader.read(65_536):
                writer.write(some)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(serve, "0.0.0.0", PORT)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(pass_on(sys.argv[1]))
